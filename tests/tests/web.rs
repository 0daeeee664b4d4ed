//! The pipeline's function in Node.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

use horchestra_tests::root;

#[test]
fn the_same_function_answers_in_node() {
    let module = root().join("target/web/pipeline/example_pipeline.js");
    assert!(module.is_file(), "{} is missing; run `cargo xtask web`", module.display());
    let mut node = Command::new("node");
    node.arg("--test").arg(root().join("tests/web/pipeline.test.cjs")).env("HORCHESTRA_WEB", &module);
    let output = node.output().expect("node is on PATH");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("pass 5"), "{text}");
}
