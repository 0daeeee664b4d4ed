//! `horchestra flight`: modules on their own, without any cluster.

mod inspect;
mod limits;
mod run;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

/// What can be done with a flight.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Evaluate a flight once and print the desired state
    ///
    /// The resource is read on stdin, as JSON or YAML. The flight's log goes to stderr, and its exit
    /// status is the command's; 125 means that it could not be run at all, or was stopped.
    Run(run::Args),
    /// Say what a module is, and which hosts can run it
    Inspect(inspect::Args),
}

/// Does it.
pub(crate) fn command(command: &Command) -> ExitCode {
    match command {
        Command::Run(args) => run::command(args),
        Command::Inspect(args) => inspect::command(args),
    }
}

/// Reads a module's file.
fn read(module: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(module)
        .map_err(|e| format!("{}: {e}; name the file of a WebAssembly module", module.display()))
}
