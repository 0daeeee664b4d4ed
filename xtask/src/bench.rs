//! `cargo xtask bench`: how fast it is, beside what it is compared with.

use std::process::Command;

use crate::flights;
use crate::run::{cargo, root};

/// Builds for speed, and runs all benches, or those whose names have one of the words.
pub(crate) fn command(words: impl Iterator<Item = String>) -> Result<(), String> {
    flights::command(std::iter::empty())?;
    let target = root().join("target/benches");
    println!("building for speed; the first time takes many minutes");
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--manifest-path"]).arg(root().join("benches/Cargo.toml"));
    build.arg("--target-dir").arg(&target);
    // Built apart from the workspace, with the settings of that.
    build.env_remove("RUSTFLAGS");
    run(&mut build)?;
    run(Command::new(target.join("release/horchestra-benches")).args(words))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed ({status})")),
        Err(e) => Err(format!("{name}: {e}")),
    }
}
