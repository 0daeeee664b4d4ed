use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, Revision};

/// What a commit did to one key. Events of one commit are in the order of their keys, each key at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The commit.
    pub revision: Revision,
    /// The key.
    pub key: Arc<str>,
    /// The new value; `None` if the key was deleted.
    pub value: Option<Bytes>,
    /// What was there before; `None` if the key was created.
    pub previous: Option<Entry>,
}

impl Event {
    /// The entry as this event left it; `None` after a deletion.
    #[must_use]
    pub fn entry(&self) -> Option<Entry> {
        self.value.as_ref().map(|value| Entry {
            key: Arc::clone(&self.key),
            value: value.clone(),
            created: self.previous.as_ref().map_or(self.revision, |previous| previous.created),
            modified: self.revision,
        })
    }
}
