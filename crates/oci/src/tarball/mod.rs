//! Reading tar archives strictly: what two readers could understand differently is refused.

mod entry;
mod number;
mod pax;
mod reader;
mod sparse;

pub(crate) use entry::{Entry, Kind, Mtime};
pub(crate) use reader::{Reader, TarError};

#[cfg(test)]
mod tests;
