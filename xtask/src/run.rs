//! Running other programs.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a program without showing what it prints; its output is in the error if it fails.
pub(crate) fn quietly(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", shown(command)))?;
    finished(command, &output)
}

fn finished(command: &Command, output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    Err(format!("{} failed ({}):\n{}", shown(command), output.status, text.trim()))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
