//! The revisioned store: etcd's semantics in memory and on redb.

mod batch;
mod commit;
mod disk;
mod entry;
mod error;
mod event;
mod hub;
mod memory;
mod page;
mod redb;
mod retention;
mod revision;
mod revisioned;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod transaction;
mod watch;
mod write;
mod writer;

pub use entry::Entry;
pub use error::StoreError;
pub use event::Event;
pub use memory::MemoryStore;
pub use page::{Page, Range};
pub use redb::RedbStore;
pub use retention::Retention;
pub use revision::Revision;
pub use revisioned::RevisionedStore;
pub use transaction::{MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_WRITES};
pub use watch::{Watch, WatchItem};
pub use write::{Expect, Write};
