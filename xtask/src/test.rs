//! `cargo xtask test`: everything that has to hold, with what it needs installed first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::install;
use crate::run::{cargo, quietly, root};
use crate::wasm_target;

/// The crates that flights are made of: they compile to WebAssembly, whoever uses them.
const PURE: [&str; 2] = ["horchestra-core", "horchestra-flight"];

struct Step {
    name: &'static str,
    took: Duration,
    passed: u32,
}

/// Runs every step; stops at the first that fails, with its output.
pub(crate) fn command() -> Result<(), String> {
    let mut done = Vec::new();
    step(&mut done, "what the tests need", |_| install::for_tests())?;
    step(&mut done, "format", |log| logged(cargo().args(["fmt", "--all", "--check"]), log))?;
    step(&mut done, "flights", |log| {
        logged(cargo().args(["run", "--quiet", "--package", "xtask", "--", "flights"]), log)
    })?;
    step(&mut done, "the command for the tests", |log| {
        logged(cargo().args(["build", "--package", "horchestra-cli"]), log)
    })?;
    step(&mut done, "tests", |log| logged(cargo().args(["test", "--workspace", "--no-fail-fast"]), log))?;
    step(&mut done, "lints", |log| {
        logged(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]), log)
    })?;
    step(&mut done, "pure crates for wasm", |log| {
        let toolchain = wasm_target::ensure()?;
        PURE.iter().try_for_each(|package| {
            let mut check = toolchain.cargo("check");
            check.args(["--package", package, "--lib"]).arg("--target-dir").arg(root().join("target/wasm"));
            logged(&mut check, log)
        })
    })?;
    step(&mut done, "documentation", |log| {
        logged(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"), log)
    })?;

    println!();
    for step in &done {
        println!("{:>7.1} s  {}", step.took.as_secs_f64(), step.name);
    }
    println!("{} passed, 0 failed", done.iter().map(|s| s.passed).sum::<u32>());
    Ok(())
}

fn step(
    done: &mut Vec<Step>,
    name: &'static str,
    run: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    println!("==> {name}");
    let log = log_of(name)?;
    let started = Instant::now();
    run(&log)?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    done.push(Step { name, took: started.elapsed(), passed: passed(&text) });
    Ok(())
}

fn log_of(name: &str) -> Result<PathBuf, String> {
    let dir = root().join("target/xtask");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let log = dir.join(name.replace(' ', "-")).with_extension("log");
    File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    Ok(log)
}

/// Runs a program with its output in a log; the end of the log is the error if it fails.
fn logged(command: &mut Command, log: &Path) -> Result<(), String> {
    let problem = |e: std::io::Error| format!("{}: {e}", log.display());
    let file = File::options().append(true).open(log).map_err(problem)?;
    let both = file.try_clone().map_err(problem)?;
    let status = command.stdin(Stdio::null()).stdout(file).stderr(both).status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    Err(format!("{command:?} failed ({status}):\n{}", interesting(&text)))
}

/// What of a failed run is worth showing: failures and what stands around them, and the end.
fn interesting(text: &str) -> String {
    const AROUND: usize = 25;
    const END: usize = 80;
    let lines: Vec<&str> = text.lines().collect();
    let marks = |l: &str| l.contains("panicked at") || l.starts_with("error") || l.contains("... FAILED");
    let mut shown = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, l)| marks(l)) {
        shown.iter_mut().skip(at.saturating_sub(2)).take(AROUND).for_each(|s| *s = true);
    }
    shown.iter_mut().rev().take(END).for_each(|s| *s = true);
    let kept = lines.iter().zip(shown).filter_map(|(l, s)| s.then_some(*l));
    kept.collect::<Vec<_>>().join("\n")
}

/// How many tests passed, by the closing lines of the test runner.
fn passed(text: &str) -> u32 {
    let counts = text.lines().filter_map(|l| l.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u32>().ok());
    counts.sum()
}

/// Whether a program is on PATH.
pub(crate) fn has(program: &str) -> bool {
    quietly(Command::new("sh").args(["-c", &format!("command -v {program}")])).is_ok()
}
