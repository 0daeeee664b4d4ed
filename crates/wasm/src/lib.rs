//! The engines that run flights, and their WASI shim.
//!
//! A flight is a WebAssembly command. [`FlightEngine::load`] turns its bytes into something that
//! can be called ([`Evaluate`]), and each call starts from nothing, within the bounds of its
//! [`Invocation`], and ends with an [`Output`] or with a [`Fault`] that says what to do. There are
//! two engines with the same behaviour to the byte: [`Wasmtime`] compiles, [`Wasmi`] interprets.
//! What a flight sees of the world is defined here once for both: WASI preview 1 without files,
//! sockets, real time or randomness, and the two host functions of the contract.
//!
//! [`Cache`] is the way to load modules in a long-lived process. Loading compiles, which takes
//! from milliseconds to minutes: never do it where a reconcile waits.

mod cache;
mod duration;
mod engine;
mod error;
mod hostcalls;
mod inspect;
#[cfg(feature = "wasmi")]
mod interpreter;
#[cfg(feature = "wasmtime")]
mod jit;
mod module;
mod session;
mod stop;
mod wasi;

pub use cache::{Cache, DEFAULT_DISK_BUDGET, DEFAULT_MEMORY_BUDGET, Verified};
pub use duration::go_duration;
pub use engine::{Aot, EngineOptions, FlightEngine};
pub use error::{CacheError, LoadError};
pub use horchestra_flight::contract::{Evaluate, Fault, Host, Invocation, Output};
pub use inspect::{Export, Import, Inspection, Verdict, inspect};
#[cfg(feature = "wasmi")]
pub use interpreter::Wasmi;
#[cfg(feature = "wasmtime")]
pub use jit::Wasmtime;
pub use module::{
    MAX_DATA_SEGMENTS, MAX_EXPORTS, MAX_FUNCTIONS, MAX_GLOBALS, MAX_IMPORTS, MAX_MODULE_BYTES,
    MAX_TABLE_ELEMENTS, MAX_TABLES, MAX_TYPES,
};
