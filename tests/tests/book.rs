//! The flight of the book, made as the chapter says, from an empty directory to the sky.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use horchestra_tests::{Markdown, Server, program, root};

const GREETING: &str = "
apiVersion: example.com/v1
kind: Greeting
metadata: {name: ann, namespace: default}
spec: {name: Ann}
";

/// The chapter's crate as a module.
fn build(chapter: &Markdown, directory: &std::path::Path) -> PathBuf {
    let path = format!("horchestra-flight = {{ path = {:?} }}", root().join("crates/flight"));
    let dependencies = chapter.code("toml").replace("horchestra-flight = \"0.1\"", &path);
    let package = "[package]\nname = \"greeting\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(directory.join("Cargo.toml"), format!("{package}{dependencies}")).unwrap();
    // The versions that are here already, so that nothing has to be fetched.
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
    fs::create_dir(directory.join("src")).unwrap();
    fs::write(directory.join("src/lib.rs"), chapter.shown_code("rust")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["xtask", "wasm"]).arg(directory).env("CARGO_NET_OFFLINE", "true");
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    PathBuf::from(text.lines().last().unwrap()).join("greeting.wasm")
}

#[test]
fn the_chapters_flight_is_built_and_flies() {
    let directory = tempfile::tempdir().unwrap();
    let chapter = Markdown::read("book/src/flight.md");
    let module = build(&chapter, directory.path());

    let mut flight = Command::new(program());
    flight.args(["flight", "run"]).arg(&module).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut flight = flight.spawn().unwrap();
    flight.stdin.take().unwrap().write_all(GREETING.as_bytes()).unwrap();
    let output = flight.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("Hello, Ann!"), "{text}");

    let server = Server::start(&directory.path().join("data"), &["--no-node", "--store", "memory"]);
    let airway = chapter.code("yaml");
    assert!(airway.contains("/path/to/greeting.wasm"));
    server.apply(&airway.replace("/path/to/greeting.wasm", &module.display().to_string()));
    server.ask(&["wait", "--for=condition=Ready", "airway/greetings.example.com", "--timeout=120s"]).unwrap();
    server.apply(GREETING);
    server.expect(&["get", "configmap", "ann", "-o", "jsonpath={.data.text}"], "Hello, Ann!");
    server.ask(&["delete", "configmap", "ann"]).unwrap();
    server.expect(&["get", "configmap", "ann", "-o", "jsonpath={.data.text}"], "Hello, Ann!");
}
