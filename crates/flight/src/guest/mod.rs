//! The flight's side of the contract: stdin, stdout, log, environment, exit, and the two questions.
//!
//! A few functions of WASI preview 1 and the two of the host are the only imports here, without a
//! libc, on both WebAssembly targets. So a flight for `wasm32-unknown-unknown` can reach no clock,
//! no randomness and no file. Natively there is no such module: the same program is run by
//! [`NativeFlight`](crate::NativeFlight).

mod host;
mod wasi;

pub use host::{lookup, rest_mapping};
pub use wasi::{args, env, exit, log, read_stdin, write_stderr, write_stdout};

/// The exit code of a flight that panicked, as of any Rust program.
pub const EXIT_PANIC: i32 = 101;

/// Makes a panic say on stderr what happened, and end the flight with [`EXIT_PANIC`].
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        log(&format!("the flight panicked: {panic}"));
        exit(EXIT_PANIC)
    }));
}
