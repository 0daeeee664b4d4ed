//! WASI preview 1 for flights: arguments, environment, stdin, stdout and stderr, and nothing else.
//!
//! Every function of `wasi_snapshot_preview1` is defined, since toolchains import more than they
//! use. There are no files and no sockets behind them. The clock and the random numbers are made
//! from the invocation, so the same invocation gives the same output.

mod clock;
mod errno;
mod guest;
mod poll;
mod process;
mod random;
mod stdio;
mod table;

pub(crate) use clock::Clock;
pub(crate) use guest::Guest;
pub(crate) use random::Random;
pub(crate) use table::{MODULE, Param, for_each_wasi_function, signature, wasi_call};

pub(crate) use errno::Errno;
pub(crate) use stdio::refuse;
/// What a WASI function does: an error number for the guest, or the end of the evaluation.
pub(crate) type Outcome = Result<Errno, crate::stop::Stop>;

pub(crate) mod functions {
    //! The functions by their WASI names, as the table wires them to the engines.

    pub(crate) use super::clock::{clock_res_get, clock_time_get};
    pub(crate) use super::poll::poll_oneoff;
    pub(crate) use super::process::{args_get, args_sizes_get, environ_get, environ_sizes_get};
    pub(crate) use super::random::random_get;
    pub(crate) use super::stdio::{fd_close, fd_fdstat_get, fd_filestat_get, fd_read, fd_write};
}
