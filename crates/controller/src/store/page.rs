use std::sync::Arc;

use super::{Entry, Revision};

/// Which part of a prefix to read. The default is all of it, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// Only keys after this one.
    pub after: Option<Arc<str>>,
    /// At most so many entries.
    pub limit: Option<usize>,
    /// As of this revision; what a list's continue token carries.
    pub at: Option<Revision>,
}

/// The entries that were asked for, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The revision that was read: a watch from here misses nothing and repeats nothing.
    pub revision: Revision,
    /// Whether the limit cut something off.
    pub more: bool,
    /// How many entries the limit cut off.
    pub remaining: usize,
}
