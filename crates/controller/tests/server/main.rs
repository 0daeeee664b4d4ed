//! The API server: in process, over HTTP, and with the real kubectl.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails ends its test")]

mod admission;
mod collector;
mod definitions;
mod hostile;
mod kubectl;
mod objects;
mod support;
mod watches;
