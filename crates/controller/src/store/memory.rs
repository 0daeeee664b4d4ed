use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use super::hub::Hub;
use super::state::State;
use super::transaction::Transaction;
use super::{Entry, Page, Range, Retention, Revision, RevisionedStore, StoreError, Watch, Write};

/// A store that is gone with the process. The same state machine as [`RedbStore`](super::RedbStore), without the disk.
///
/// Dropping it ends its watches.
#[derive(Debug)]
pub struct MemoryStore {
    hub: Arc<Hub>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(retention: Retention) -> Self {
        MemoryStore { hub: Hub::new(State::new(retention)) }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new(Retention::default())
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.hub.close();
    }
}

#[async_trait]
impl RevisionedStore for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.hub.get(key)
    }

    async fn range(&self, prefix: &str, options: Range) -> Result<Page, StoreError> {
        self.hub.range(prefix, &options)
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Revision, StoreError> {
        let transaction = Transaction::new(writes)?;
        let now = SystemTime::now();
        self.hub.commit(|mut stage| (stage.write(transaction, now), stage.finish(now)))?
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Watch, StoreError> {
        self.hub.watch(prefix, from)
    }

    async fn compact(&self, to: Revision) -> Result<(), StoreError> {
        self.hub.commit(|mut stage| (stage.compact(to), stage.finish(SystemTime::now())))?
    }

    fn revision(&self) -> Revision {
        self.hub.read().state.revision()
    }

    fn compacted(&self) -> Revision {
        self.hub.read().state.compacted()
    }
}
