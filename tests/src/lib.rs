//! What the end-to-end tests share: the command itself, and kubectl. The code of README and book
//! is tested here as well.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[cfg(doctest)]
mod documents;
mod image;
mod job;
mod machine;
mod markdown;
mod server;

pub use image::images;
pub use job::complete;
pub use machine::Machine;
pub use markdown::{Markdown, documents};
pub use server::{Server, airway, module, program, root, wait_for};
