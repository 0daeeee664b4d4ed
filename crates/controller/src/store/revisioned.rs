use std::fmt::Debug;

use async_trait::async_trait;

use super::{Entry, Page, Range, Revision, StoreError, Watch, Write};

/// A store of keys and values with etcd's semantics: one revision counter, compare-and-swap, watches from a revision.
///
/// Guarantees:
/// - a read that starts after a write was acknowledged sees it;
/// - nothing is visible before it is durable;
/// - a watch delivers every event below its prefix exactly once, in the order of revisions, and ends with an error where it
///   cannot;
/// - a revision is never given twice and never turns back, whatever is compacted and whenever the process dies.
///
/// # What etcd once got wrong
/// Its issues on <https://github.com/etcd-io/etcd>, and why they do not happen here:
/// - 13766, 14370 (inconsistent revision, or a lost write, after a crash): data and revision are one transaction of the file,
///   and what is not synced is neither acknowledged nor shown; tested by killing the process and by a disk that loses power.
/// - 15220 (progress ahead of events): whether a watch is behind is decided under the lock under which commits become visible.
/// - 15271 (a watch goes back in time): there is one copy of the data, and a watch only moves forward in its log.
/// - 17247, 17529 (an event twice, or lost when a stream starves): a watch has one position and no buffer; what it has
///   not fetched is in the log, or it ends with [`StoreError::Lagged`].
/// - 17780 (the revision decreases by a crash in a compaction): what is removed and how far it is compacted are one transaction,
///   and an opened store is never below what is compacted, even where no record of it is left.
/// - 18089, 19179 (a deletion lost when compacting at it): `from` is exclusive, so that who may watch after a compaction has
///   seen the deletion; tested on both sides of the revision.
/// - 20221 (a watch on a future revision): it is refused with [`StoreError::Future`].
/// - 20418 (stale reads after a pause): one process has the file, locked, and answers from what it wrote itself.
#[async_trait]
pub trait RevisionedStore: Send + Sync + Debug {
    /// The entry of a key, now.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// The entries whose keys start with `prefix`, in the order of the keys' bytes.
    ///
    /// # Errors
    /// [`StoreError::Gone`] and [`StoreError::Future`] for `options.at`.
    async fn range(&self, prefix: &str, options: Range) -> Result<Page, StoreError>;

    /// Writes all or nothing, at one revision, which is durable when this returns. Where nothing changes (no writes, or
    /// deletions of what is absent) that is the newest revision and no new one.
    ///
    /// Dropping the future does not take the write back: it may happen or not.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a precondition does not hold, [`StoreError::Duplicate`], [`StoreError::TooLarge`];
    /// [`StoreError::Broken`] if the disk fails, after which it is unknown whether the writes are on it.
    async fn write(&self, writes: Vec<Write>) -> Result<Revision, StoreError>;

    /// The events after revision `from` on keys that start with `prefix`.
    ///
    /// # Errors
    /// [`StoreError::Gone`] if some of them are compacted, [`StoreError::Future`] if the store is not yet at `from`.
    async fn watch(&self, prefix: &str, from: Revision) -> Result<Watch, StoreError>;

    /// Forgets the history up to and with `to`: reads at `to` and watches from `to` still work, older ones do not. Compacting
    /// what is compacted already does nothing.
    ///
    /// # Errors
    /// [`StoreError::Future`] if the store is not yet at `to`.
    async fn compact(&self, to: Revision) -> Result<(), StoreError>;

    /// The newest revision that is committed.
    fn revision(&self) -> Revision;

    /// The newest revision that is compacted; [`Revision::ZERO`] if nothing is.
    fn compacted(&self) -> Revision;
}
