//! The project's own commands: `cargo xtask COMMAND`.

mod bench;
mod demo;
mod flights;
mod install;
mod run;
mod step;
mod tally;
mod test;
mod wasm_target;
mod web;

use std::process::ExitCode;

const USAGE: &str = "\
The project's own commands.

Usage: cargo xtask COMMAND

Commands:
  demo       Show the examples at work; --fail STEP lets a job fail, --keep leaves it running
  test       Install what the tests need, and run all of them
  flights    Build the example flights to target/flights/{pipeline,app}.wasm; --tests: those of tests too
  web        Build the pipeline's function for pages and Node to target/web/pipeline
  bench      Measure how fast it is, beside what it is compared with
  wasm DIR   Build the crate in a directory as a flight, with the same toolchain
  help       Print this
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_else(|| "help".into());
    let result = match command.as_str() {
        "demo" => demo::command(args),
        "test" => test::command(),
        "flights" => flights::command(args),
        "wasm" => flights::elsewhere(args),
        "web" => web::command(),
        "bench" => bench::command(args),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("there is no command {other:?}\n\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
