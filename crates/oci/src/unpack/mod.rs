//! Layers into one directory, with nothing trusted and nothing visible before it is whole.

mod apply;
mod meta;
mod name;
mod remove;
mod run;
mod tree;

pub use remove::remove_tree;
pub use run::{Options, Owners, Report, unpack};
