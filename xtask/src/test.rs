//! `cargo xtask test`: everything that has to hold, from nothing but a Rust toolchain.

use std::process::Command;

use crate::run::{cargo, quietly, root};
use crate::step::Step;
use crate::tally::Tally;
use crate::{flights, install, wasm_target, web};

/// Crates that compile for WebAssembly on their own: no clock, no randomness, no files, no network.
const PURE: [&str; 2] = ["horchestra-core", "horchestra-flight"];

/// Runs all steps, also after one that failed, and sums them up.
pub(crate) fn command() -> Result<(), String> {
    let mut steps = Vec::new();
    let toolchain = wasm_target::ensure();
    steps.push(Step::call("tools", || {
        install::components()?;
        install::kubectl()?;
        install::machine()?;
        install::node()?;
        toolchain.as_ref().map(drop).map_err(Clone::clone)
    }));
    steps.push(step("format", cargo().args(["fmt", "--all", "--check"])));
    // The first to compile: the checks that follow take the dependencies' metadata from it.
    // What a test unwraps, or panics about, is its verdict; nothing else may do either.
    let tests = ["--deny", "warnings", "--allow", "clippy::unwrap_used", "--allow", "clippy::panic"];
    steps.push(step(
        "clippy of tests",
        cargo().args(["clippy", "--workspace", "--all-targets", "--"]).args(tests),
    ));
    steps.push(step("clippy", cargo().args(["clippy", "--workspace", "--", "--deny", "warnings"])));
    let docs = ["doc", "--workspace", "--no-deps", "--lib"];
    steps.push(step("documentation", cargo().args(docs).env("RUSTDOCFLAGS", "--deny warnings")));
    if let Ok(toolchain) = &toolchain {
        let mut check = toolchain.cargo("check");
        check.args(PURE.iter().flat_map(|name| ["--package", name])).arg("--lib");
        check.arg("--target-dir").arg(root().join("target/wasm"));
        steps.push(step("pure crates for wasm32", &mut check));
    }
    steps.push(Step::call("flights", flights::for_tests));
    steps.push(Step::call("web", web::command));
    // Together with the test programs, so that all of them share one set of features.
    let build = ["build", "--workspace", "--bins", "--examples", "--tests"];
    steps.push(step("build", cargo().args(build)));
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]);
    tests.env("HORCHESTRA_FLIGHTS", root().join("target/flights"));
    let (tests, log) = Step::run("tests", &mut tests);
    let tally = Tally::of(&log);
    steps.push(tests);
    steps.push(minimum_version());

    println!("\nall steps");
    steps.iter().for_each(|step| println!("{}", step.line()));
    let bad: Vec<_> = steps.iter().filter(|s| !s.is_good()).map(|s| s.name).collect();
    println!("\n{tally}");
    if !bad.is_empty() {
        return Err(format!("failed: {}; their logs are in target/xtask", bad.join(", ")));
    }
    if tally.passed == 0 || tally.failed > 0 {
        return Err("the tests did not all pass".into());
    }
    Ok(())
}

fn step(name: &'static str, command: &mut Command) -> Step {
    Step::run(name, command).0
}

/// Tries the oldest compiler that the manifests promise, unless it is the one in use.
fn minimum_version() -> Step {
    const NAME: &str = "minimum Rust version";
    let (declared, used) = match (declared_version(), used_version()) {
        (Ok(declared), Ok(used)) => (declared, used),
        (Err(e), _) | (_, Err(e)) => return Step::call(NAME, || Err(e)),
    };
    if used == declared || used.starts_with(&format!("{declared}.")) {
        return Step::call(NAME, || Ok(()));
    }
    let install = ["toolchain", "install", &declared, "--profile", "minimal", "--no-self-update"];
    if quietly(Command::new("rustup").args(install)).is_err() {
        return Step::skipped(NAME, format!("rustup cannot fetch Rust {declared}; {used} was tried"));
    }
    let mut check = Command::new("cargo");
    check.current_dir(root()).arg(format!("+{declared}")).args(["check", "--package", "horchestra-cli"]);
    check.arg("--target-dir").arg(root().join("target/minimum"));
    check.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    step(NAME, &mut check)
}

fn declared_version() -> Result<String, String> {
    let metadata = quietly(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    let version = metadata.pointer("/packages/0/rust_version").and_then(|v| v.as_str());
    version.map(str::to_owned).ok_or_else(|| "no rust-version is declared".into())
}

fn used_version() -> Result<String, String> {
    let text = quietly(Command::new("rustc").arg("--version"))?;
    text.split_whitespace().nth(1).map(str::to_owned).ok_or_else(|| format!("rustc --version says {text:?}"))
}
