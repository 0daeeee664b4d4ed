//! The `horchestra` command.

mod flight;
mod log;
mod replay;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Reconcilers, natively and as WebAssembly flights, on plain Linux or Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "horchestra", version, arg_required_else_help = true)]
struct Cli {
    /// How log lines on stderr look. What is logged is set by RUST_LOG (`info`, `horchestra=debug`).
    #[arg(long, global = true, value_enum, default_value_t = log::Format::Text)]
    log_format: log::Format,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run controller, flights and a local node in this process
    Up(up::Up),
    /// Run the recorded runs of a journal again and show the first difference
    Replay(replay::Replay),
    /// Run a flight once, or see what it is
    #[command(subcommand)]
    Flight(flight::Command),
}

fn main() -> ExitCode {
    // A workload of the local node begins as this program.
    horchestra::systemd::launch::run_if_asked();
    let cli = Cli::parse();
    log::init(cli.log_format);
    match cli.command {
        Command::Up(up) => wait(up.run()),
        Command::Replay(replay) => wait(replay.run()),
        Command::Flight(command) => flight::command(&command),
    }
}

/// Runs a command that waits for things.
fn wait(command: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => {
            eprintln!("horchestra: cannot start its threads: {error}");
            ExitCode::FAILURE
        }
    }
}
