//! Loaded and compiled modules, kept.

mod artifact;
mod directory;
mod loaded;
mod modules;

pub use artifact::Verified;
pub use modules::{Cache, DEFAULT_DISK_BUDGET, DEFAULT_MEMORY_BUDGET};
