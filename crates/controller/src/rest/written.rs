//! The answer to a write.

use crate::object::Object;

/// Largest stored object, in bytes: as much as a request may bring.
pub const MAX_OBJECT: usize = 3 * 1024 * 1024;

/// What a write left behind.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object as it is now (as it would be, for a dry run).
    pub object: Object,
    /// What the client should be told.
    pub warnings: Vec<String>,
    /// The object is new.
    pub created: bool,
}
