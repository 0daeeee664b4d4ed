use std::sync::Arc;
use std::time::SystemTime;

use super::{Event, Revision};

/// What an event takes in the log beside its key and values, in bytes: the structs and the allocations' headers.
const EVENT_OVERHEAD: usize = 200;

/// One revision: all that one transaction changed.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) revision: Revision,
    pub(super) at: SystemTime,
    /// Never empty, in the order of the keys.
    pub(super) events: Arc<[Event]>,
}

impl Commit {
    /// An upper bound of the memory that dropping this commit from the log gives back.
    pub(super) fn bytes(&self) -> usize {
        self.events
            .iter()
            .map(|event| {
                let before = event.previous.as_ref().map_or(0, |previous| previous.value.len());
                EVENT_OVERHEAD
                    + event.key.len()
                    + event.value.as_ref().map_or(0, |value| value.len())
                    + before
            })
            .sum()
    }

    pub(super) fn touches(&self, prefix: &str) -> bool {
        self.events.iter().any(|event| event.key.starts_with(prefix))
    }

    /// The events below a prefix; shared when that is all of them.
    pub(super) fn below(&self, prefix: &str) -> Arc<[Event]> {
        if self.events.iter().all(|event| event.key.starts_with(prefix)) {
            Arc::clone(&self.events)
        } else {
            self.events.iter().filter(|event| event.key.starts_with(prefix)).cloned().collect()
        }
    }
}
