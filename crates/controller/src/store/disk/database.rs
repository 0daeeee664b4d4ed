use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::create;
use super::failure::{broken, damaged, io, open, panicked};
use super::load::{LoadError, load};
use super::record::Record;
use crate::store::batch::Batch;
use crate::store::state::State;
use crate::store::{Retention, StoreError};

/// The format that is written, and the only one that is read.
pub(super) const FORMAT_VERSION: u64 = 1;
/// Events by revision and key, as etcd keeps them: a value is written once, at the end of the tree, and an index is built in
/// memory. Compaction removes the events that no revision left shows.
pub(super) const REVISIONS: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("revisions");
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(super) const FORMAT: &str = "format";
pub(super) const COMPACTED: &str = "compacted";
/// How many records are at or below `compacted`.
pub(super) const BASE: &str = "base";

/// redb's page cache, in bytes. The values are in memory already; this is for the tree's inner pages.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// The store's file, open and locked.
///
/// A commit is one redb transaction with one sync: redb writes it with checksums, and after a crash takes the last of its two
/// commit slots whose checksums hold. So a commit is there whole or not at all, and what was acknowledged is there.
/// The check of all checksums at opening finds damage done later; it costs one reading of the file.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    redb: redb::Database,
}

impl Database {
    /// Opens a file, creating it (and its directory) where there is none, and reads the state from it.
    pub(crate) fn open(path: &Path, retention: Retention) -> Result<(Self, State), StoreError> {
        guarded(path, || {
            if !path.try_exists().map_err(|error| io(path, &error))? {
                create(path, initialise)?;
            }
            create::secure(path).map_err(|error| io(path, &error))?;
            let redb = redb::Database::builder()
                .set_cache_size(CACHE_BYTES)
                .set_check_integrity_on_open(true)
                .open(path)
                .map_err(|error| open(path, error))?;
            Self::load(path, redb, retention)
        })
    }

    /// Reads the state from an open database.
    pub(crate) fn load(
        path: &Path,
        redb: redb::Database,
        retention: Retention,
    ) -> Result<(Self, State), StoreError> {
        let transaction = redb.begin_read().map_err(|error| damaged(path, error))?;
        let state = load(&transaction, retention).map_err(|error| match error {
            LoadError::Damaged(reason) => damaged(path, reason),
            LoadError::Newer { version } => broken(
                path,
                format_args!(
                    "it has the format version {version}, this program knows up to {FORMAT_VERSION}"
                ),
                "use the newer version that wrote it, or a backup from before",
            ),
        })?;
        drop(transaction);
        Ok((Database { path: path.to_owned(), redb }, state))
    }

    /// Makes a batch durable: all of it or nothing. After an error it is unknown which, and redb refuses further commits
    /// where it cannot know either.
    pub(crate) fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let failed = |error: redb::Error| {
            broken(
                &self.path,
                format_args!("a commit failed ({error})"),
                "see to the disk and its free space, then start again; it is unknown whether the write is on the disk",
            )
        };
        catch_unwind(AssertUnwindSafe(|| self.try_commit(batch)))
            .unwrap_or_else(|panic| {
                let _ = panic;
                Err(redb::Error::PreviousIo)
            })
            .map_err(failed)
    }

    fn try_commit(&self, batch: &Batch) -> Result<(), redb::Error> {
        let mut transaction = self.redb.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let mut revisions = transaction.open_table(REVISIONS)?;
        for commit in &batch.commits {
            for event in commit.events.iter() {
                let record = Record::of(event, commit.events.len(), commit.at).encode();
                revisions.insert((event.revision.0, &*event.key), record.as_slice())?;
            }
        }
        if let Some(compaction) = &batch.compaction {
            for (revision, key) in &compaction.superseded {
                revisions.remove((revision.0, &**key))?;
            }
            let mut meta = transaction.open_table(META)?;
            meta.insert(COMPACTED, compaction.to.0)?;
            meta.insert(BASE, compaction.base)?;
        }
        drop(revisions);
        Ok(transaction.commit()?)
    }

    /// Writes what is committed now to a new file. Writers go on meanwhile.
    pub(crate) fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let created = guarded(to, || {
            create(to, |copy| {
                let from = self.redb.begin_read()?;
                let transaction = copy.begin_write()?;
                let mut revisions = transaction.open_table(REVISIONS)?;
                for record in from.open_table(REVISIONS)?.iter()? {
                    let (key, value) = record?;
                    revisions.insert(key.value(), value.value())?;
                }
                let mut meta = transaction.open_table(META)?;
                for number in from.open_table(META)?.iter()? {
                    let (name, number) = number?;
                    meta.insert(name.value(), number.value())?;
                }
                drop((revisions, meta));
                Ok(transaction.commit()?)
            })
        })?;
        if created {
            Ok(())
        } else {
            Err(broken(to, "it exists already", "give the backup a new name; nothing is ever replaced"))
        }
    }
}

/// Makes an empty store of a new database.
pub(super) fn initialise(redb: &redb::Database) -> Result<(), redb::Error> {
    let transaction = redb.begin_write()?;
    transaction.open_table(REVISIONS)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(FORMAT, FORMAT_VERSION)?;
    meta.insert(COMPACTED, 0)?;
    meta.insert(BASE, 0)?;
    drop(meta);
    Ok(transaction.commit()?)
}

/// Creates a database file and fills it; `false` if there is a file.
fn create(
    path: &Path,
    fill: impl FnOnce(&redb::Database) -> Result<(), redb::Error>,
) -> Result<bool, StoreError> {
    create::create(path, |draft| {
        let redb = redb::Database::builder().set_cache_size(CACHE_BYTES).create(draft)?;
        fill(&redb)?;
        redb.close()?;
        Ok(())
    })
    .map_err(|error: redb::Error| match error {
        redb::Error::Io(error) => io(path, &error),
        error => broken(path, error, "see to the disk and its free space, then try again"),
    })
}

/// redb may panic over a damaged file. That is an error like another.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(path, &*panic)))
}
