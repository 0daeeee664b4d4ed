use std::sync::Arc;

use bytes::Bytes;

use super::Revision;

/// A key with its value, as of some revision. Cheap to clone: key and value are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// The value; the store does not look inside.
    pub value: Bytes,
    /// The commit that created the key (again, if it was deleted before).
    pub created: Revision,
    /// The commit that wrote this value. What [`Expect::At`](super::Expect::At) compares with.
    pub modified: Revision,
}
