//! Controller, flights and a local node in one process, over an embedded store.

#[cfg(feature = "flights")]
mod admission;
mod error;
mod options;
mod server;

pub use self::error::EmbeddedError;
pub use self::options::{EmbeddedOptions, StoreChoice};
pub use self::server::Embedded;
