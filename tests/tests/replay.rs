//! A journal of a server, run again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

use horchestra_tests::{Server, airway, module, program, root, wait_for};

#[test]
fn a_journal_comes_out_the_same_until_the_flight_is_another() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let server = Server::start(
        &directory.path().join("data"),
        &["--no-node", "--store", "memory", "--journal", journal.to_str().unwrap()],
    );
    server.apply(&airway("pipeline"));
    server
        .ask(&["wait", "--for=condition=Ready", "airway/pipelines.examples.com", "--timeout=120s"])
        .unwrap();
    let instance = root().join("examples/pipeline/instance.yaml");
    server.ask(&["apply", "-f", instance.to_str().unwrap()]).unwrap();
    wait_for("the first job", || server.ask(&["get", "job", "hello-one"]));
    assert!(server.stop(), "it ends well when it is told to");

    let replay = |more: &[&str]| {
        let output = Command::new(program()).arg("replay").arg(&journal).args(more).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (same, text) = replay(&[]);
    assert!(same && text.contains("came out the same"), "{text}");
    assert!(!text.starts_with("0 runs"), "nothing was recorded: {text}");
    // The other example's flight does not know pipelines.
    let (same, text) = replay(&["--flight", module("app").to_str().unwrap()]);
    assert!(!same && text.contains("came out differently") && text.contains("hello"), "{text}");
}
