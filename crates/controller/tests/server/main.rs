//! The API server: in process, over HTTP, and with the real kubectl.

mod admission;
mod collector;
mod definitions;
mod hostile;
mod kubectl;
mod objects;
mod support;
mod watches;
