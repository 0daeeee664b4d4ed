use std::sync::Arc;

use bytes::Bytes;

use super::Revision;

/// What a write demands of the key before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// The key does not exist.
    Absent,
    /// The key exists and was last modified by this commit.
    At(Revision),
}

/// One change to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets the value. Writing the value that is already there is a change like any other.
    Put {
        /// The key.
        key: Arc<str>,
        /// The new value.
        value: Bytes,
        /// The precondition.
        expect: Expect,
    },
    /// Removes the key. Where the key does not exist (and `expect` allows that) it changes nothing.
    Delete {
        /// The key.
        key: Arc<str>,
        /// The precondition.
        expect: Expect,
    },
}

impl Write {
    /// The key that is written.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        match self {
            Write::Put { key, .. } | Write::Delete { key, .. } => key,
        }
    }

    /// The precondition.
    #[must_use]
    pub fn expect(&self) -> Expect {
        match self {
            Write::Put { expect, .. } | Write::Delete { expect, .. } => *expect,
        }
    }
}
