//! The interpreting engine: wasmi.

mod context;
mod engine;
mod flight;
mod linker;
mod start;

pub use engine::Wasmi;
