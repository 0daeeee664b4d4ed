//! What the end-to-end tests share: the command itself, and kubectl.

mod server;

pub use server::{Server, module, program, root, wait_for};
