use std::path::PathBuf;
use std::sync::Arc;

use super::{Entry, Revision};

/// Why the store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A precondition does not hold; nothing of the commit was written.
    #[error("`{key}` {}: read it again and decide anew", state(current.as_ref()))]
    Conflict {
        /// The key whose precondition failed.
        key: Arc<str>,
        /// What is there.
        current: Option<Entry>,
    },
    /// The history that was asked for is compacted.
    #[error(
        "history up to revision {compacted} is compacted: read the present state again and watch from its revision"
    )]
    Gone {
        /// The newest revision that is compacted.
        compacted: Revision,
    },
    /// The revision does not exist yet. After a restore from a backup: clients hold revisions from after it.
    #[error(
        "the newest revision is {current}, an older one than was asked for: read the present state again"
    )]
    Future {
        /// The newest revision.
        current: Revision,
    },
    /// The watcher was so slow that the events it had still to get were compacted. It is at its end.
    #[error(
        "too slow: events from revision {behind} on were not fetched before {compacted} was compacted: read the present state again and watch from its revision"
    )]
    Lagged {
        /// The first revision that was not delivered.
        behind: Revision,
        /// The newest revision that is compacted.
        compacted: Revision,
    },
    /// A bound is exceeded.
    #[error("the {what} has a size of {size}, at most {limit} are stored: split it")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size, in bytes where nothing else is said.
        size: usize,
        /// The largest size.
        limit: usize,
    },
    /// One commit writes a key twice.
    #[error("`{key}` is written twice in one commit: write it once")]
    Duplicate {
        /// The key.
        key: Arc<str>,
    },
    /// The store was closed.
    #[error("the store is closed: open it again")]
    Closed,
    /// The file or the disk below the store. After a failed write it is not known whether the write is on the disk.
    #[error("store file {}: {reason}: {remedy}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do.
        remedy: String,
    },
}

fn state(current: Option<&Entry>) -> String {
    match current {
        None => "does not exist".into(),
        Some(entry) => format!("exists, last modified at revision {}", entry.modified),
    }
}
