//! Horchestra from outside its workspace: an ordinary dependency, and packages that can be published.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use horchestra_tests::{Markdown, root};
use serde_json::Value;

/// What must not come along unasked: engines, stores, servers, TLS, images, command lines.
const UNASKED: [&str; 12] =
    ["wasmtime", "wasmi", "redb", "hyper", "axum", "tonic", "rustls", "ring", "tar", "zstd", "clap", "zbus"];

const MANIFEST: &str = r#"
[package]
name = "fresh"
version = "0.0.0"
edition = "2024"

[dependencies]
horchestra = { path = "ROOT/crates/horchestra" }
k8s-openapi = { version = "0.29", default-features = false, features = ["v1_36"] }
kube-derive = "5"
schemars = "1.2"
serde = { version = "1", features = ["derive"] }
serde_json = "1"

[workspace]
"#;

/// A crate of its own with the README's example in it.
fn fresh_crate() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let manifest = MANIFEST.replace("ROOT", &root().display().to_string());
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    // The versions that are here already, so that nothing has to be fetched.
    fs::copy(root().join("Cargo.lock"), dir.path().join("Cargo.lock")).unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("src/lib.rs"), Markdown::read("README.md").code("rust")).unwrap();
    dir
}

/// A cargo that knows nothing of this workspace.
fn cargo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(directory).args(arguments).arg("--offline");
    command.env_remove("K8S_OPENAPI_ENABLED_VERSION").env("CARGO_TARGET_DIR", target());
    command
}

/// Beside the target directory of these tests, so that a second run has something to build on.
fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("fresh")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_dependency_brings_no_engine_store_or_server() {
    let dir = fresh_crate();
    let tree = run(&mut cargo(dir.path(), &["tree", "--edges", "normal", "--prefix", "none"]));
    assert!(tree.lines().any(|l| l.starts_with("horchestra-runtime ")), "this is not the tree:\n{tree}");
    for name in UNASKED {
        let found = tree.lines().find(|l| l.split(' ').next() == Some(name));
        assert!(found.is_none(), "{name} came along");
    }
}

#[test]
fn the_readmes_example_is_a_crate() {
    let dir = fresh_crate();
    run(&mut cargo(dir.path(), &["check"]));
}

#[test]
fn every_crate_can_be_packaged() {
    let metadata = run(Command::new(env!("CARGO")).current_dir(root()).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let published = packages.iter().filter(|p| p["publish"].as_array().is_none_or(|to| !to.is_empty()));
    let names: Vec<&str> = published.map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"horchestra") && names.len() > 9, "{names:?}");
    // All together, since they depend on each other and none of them is published yet.
    let mut package = cargo(&root(), &["package", "--no-verify", "--allow-dirty"]);
    package.args(names.iter().flat_map(|name| ["--package", name]));
    run(&mut package);
    for name in names {
        let list = run(&mut cargo(&root(), &["package", "--list", "--allow-dirty", "--package", name]));
        for file in ["Cargo.toml", "README.md"] {
            assert!(list.lines().any(|l| l == file), "{name} has no {file}");
        }
    }
}
