//! Structural schemas: the rules that a kind's objects follow, and what they default to.

mod compile;
mod default;
mod format;
mod meta;
mod node;
mod pattern;
mod prune;
mod rules;
mod structural;
mod validate;

#[cfg(test)]
mod tests;

pub use self::node::Schema;
pub(crate) use self::node::{ListKind, Node};
