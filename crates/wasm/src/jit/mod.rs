//! The compiling engine: wasmtime with Cranelift.

mod aot;
mod config;
mod context;
mod engine;
mod flight;
mod gate;
mod linker;
mod ticker;

pub use engine::Wasmtime;
