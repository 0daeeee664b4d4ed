//! What units write: bounded files with a time on every line.

mod line;
mod reader;
mod writer;

pub(crate) use reader::open;
pub use reader::{LogOptions, LogStream};
pub(crate) use writer::{LogWriter, Pump, Stream};
