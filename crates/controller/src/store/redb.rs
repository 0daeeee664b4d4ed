use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::disk::Database;
use super::hub::Hub;
use super::state::State;
use super::transaction::Transaction;
use super::writer::{self, Job};
use super::{Entry, Page, Range, Retention, Revision, RevisionedStore, StoreError, Watch, Write};

/// The most bytes of writes that wait for the disk, counted in steps of [`QUEUE_STEP`]. Who comes later waits to queue.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;
const QUEUE_STEP: usize = 1024;

/// A store in one file, for one process.
///
/// Reads are answered from memory: the present and the history that is kept are loaded when the file is opened, at about 200
/// bytes a key beside its key and value. Writes go to one thread that commits in groups, each with one sync; a
/// write is acknowledged, and visible to reads and watches, once it is on the disk.
///
/// The file needs a file system with locks and hard links, on a disk that does not lie about syncs. It does not shrink: space
/// that compaction frees is used again.
///
/// Dropping the store waits for the writes that are under way, ends its watches and closes the file.
#[derive(Debug)]
pub struct RedbStore {
    hub: Arc<Hub>,
    database: Arc<Database>,
    queue: Arc<Semaphore>,
    /// `None` only while dropping.
    jobs: Option<mpsc::UnboundedSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the store in `file`, or creates it, readable by its owner alone. Reads the whole file; blocks meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if the file is in use, damaged, not a store, or of a newer format. It is then left as it is: no
    /// file is ever replaced.
    pub fn open(file: impl AsRef<Path>, retention: Retention) -> Result<Self, StoreError> {
        let (database, state) = Database::open(file.as_ref(), retention)?;
        Self::start(file.as_ref(), database, state)
    }

    fn start(file: &Path, database: Database, state: State) -> Result<Self, StoreError> {
        let (hub, database) = (Hub::new(state), Arc::new(database));
        let (sender, receiver) = mpsc::unbounded_channel();
        let writer = writer::start(Arc::clone(&hub), Arc::clone(&database), receiver).map_err(|error| {
            StoreError::Broken {
                file: file.to_owned(),
                reason: format!("its writer's thread did not start ({error})"),
                remedy: "raise the limit of threads".into(),
            }
        })?;
        Ok(RedbStore {
            hub,
            database,
            queue: Arc::new(Semaphore::new(QUEUE_BYTES / QUEUE_STEP)),
            jobs: Some(sender),
            writer: Some(writer),
        })
    }

    /// Writes what is committed now to the new file `to`, while others read and write. The copy is a store that
    /// [`open`](Self::open) takes; put in the place of the original, it makes clients that saw newer revisions get
    /// [`StoreError::Future`] and read anew.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if `to` exists or cannot be written.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<(), StoreError> {
        let (database, to) = (Arc::clone(&self.database), to.as_ref().to_owned());
        tokio::task::spawn_blocking(move || database.backup(&to)).await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).map_err(|_| StoreError::Closed)
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            // It closes the hub however it ends, and a panic in it is no reason for one here.
            let _ = writer.join();
        }
    }
}

#[async_trait]
impl RevisionedStore for RedbStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.hub.get(key)
    }

    async fn range(&self, prefix: &str, options: Range) -> Result<Page, StoreError> {
        self.hub.range(prefix, &options)
    }

    async fn write(&self, writes: Vec<Write>) -> Result<Revision, StoreError> {
        let transaction = Transaction::new(writes)?;
        let steps = u32::try_from(transaction.bytes() / QUEUE_STEP + 1).unwrap_or(u32::MAX);
        let queue = Arc::clone(&self.queue);
        let permit = queue.acquire_many_owned(steps).await.map_err(|_| StoreError::Closed)?;
        let (reply, result) = oneshot::channel();
        self.send(Job::Write { transaction, reply, permit })?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Watch, StoreError> {
        self.hub.watch(prefix, from)
    }

    async fn compact(&self, to: Revision) -> Result<(), StoreError> {
        let (reply, result) = oneshot::channel();
        self.send(Job::Compact { to, reply })?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    fn revision(&self) -> Revision {
        self.hub.read().state.revision()
    }

    fn compacted(&self) -> Revision {
        self.hub.read().state.compacted()
    }
}
