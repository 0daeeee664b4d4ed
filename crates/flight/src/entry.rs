//! What `main!` expands to: a program's run from stdin to stdout on a real host.

use std::sync::Arc;

use horchestra_core::DynReconciler;

use crate::contract::{Host, Question, Refusal};
use crate::guest;
use crate::program::Program;

/// Runs a flight and ends the program.
pub fn start(reconcilers: &[&dyn DynReconciler]) {
    guest::install_panic_hook();
    let output = Program(reconcilers).run(&guest::read_stdin(), Arc::new(Imports));
    guest::write_stderr(&output.stderr);
    guest::write_stdout(&output.stdout);
    if output.exit_code != 0 {
        guest::exit(output.exit_code);
    }
}

/// The host on the other side of the imports.
struct Imports;

impl Host for Imports {
    fn ask(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        let answer = match &question {
            Question::Lookup { name, namespace, kind, api_version } => {
                guest::lookup(name, namespace, kind, api_version)
            }
            Question::RestMapping { group_or_api_version, kind } => {
                guest::rest_mapping(group_or_api_version, kind)
            }
        };
        answer.map_err(|(state, text)| Refusal::State(state, text))
    }
}
