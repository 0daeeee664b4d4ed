//! What the store's tests share: a model that is too simple to be wrong, and stores to hold against it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use horchestra_controller::store::{
    Entry, Event, Expect, MemoryStore, Page, Range, RedbStore, Retention, Revision, RevisionedStore,
    StoreError, Write,
};

pub(crate) fn put(key: &str, value: impl Into<Bytes>, expect: Expect) -> Write {
    Write::Put { key: key.into(), value: value.into(), expect }
}

pub(crate) fn delete(key: &str, expect: Expect) -> Write {
    Write::Delete { key: key.into(), expect }
}

/// The whole history as a list of whole snapshots.
#[derive(Debug)]
pub(crate) struct Model {
    /// From revision 1 on.
    snapshots: Vec<BTreeMap<String, Entry>>,
    /// What led to the snapshot of the same index.
    events: Vec<Vec<Event>>,
    pub(crate) compacted: Revision,
}

impl Model {
    pub(crate) fn new() -> Self {
        Model { snapshots: vec![BTreeMap::new()], events: vec![Vec::new()], compacted: Revision(0) }
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.snapshots.len() as u64)
    }

    fn check(&self, at: Revision) -> Result<(), StoreError> {
        if at > self.revision() {
            return Err(StoreError::Future { current: self.revision() });
        }
        if at < self.compacted {
            return Err(StoreError::Gone { compacted: self.compacted });
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry> {
        self.snapshots.last().unwrap().get(key).cloned()
    }

    pub(crate) fn write(&mut self, writes: &[Write]) -> Result<Revision, StoreError> {
        let mut sorted: BTreeMap<&str, &Write> = BTreeMap::new();
        for write in writes {
            sorted.insert(write.key(), write);
        }
        if sorted.len() < writes.len() {
            let twice = |key: &str| writes.iter().filter(|write| &**write.key() == key).count() > 1;
            let key = sorted.keys().find(|key| twice(key)).unwrap();
            return Err(StoreError::Duplicate { key: Arc::from(*key) });
        }
        let mut now = self.snapshots.last().unwrap().clone();
        let revision = self.revision().next();
        for (key, write) in &sorted {
            let current = now.get(*key).cloned();
            let fine = match write.expect() {
                Expect::Any => true,
                Expect::Absent => current.is_none(),
                Expect::At(at) => current.as_ref().map(|entry| entry.modified) == Some(at),
            };
            if !fine {
                return Err(StoreError::Conflict { key: Arc::from(*key), current });
            }
        }
        let mut events = Vec::new();
        for (key, write) in sorted {
            let previous = now.get(key).cloned();
            let value = match write {
                Write::Put { value, .. } => Some(value.clone()),
                Write::Delete { .. } if previous.is_none() => continue,
                Write::Delete { .. } => None,
            };
            if let Some(value) = value.clone() {
                let created = previous.as_ref().map_or(revision, |previous| previous.created);
                now.insert(key.to_owned(), Entry { key: key.into(), value, created, modified: revision });
            } else {
                now.remove(key);
            }
            events.push(Event { revision, key: key.into(), value, previous });
        }
        if !events.is_empty() {
            self.snapshots.push(now);
            self.events.push(events);
        }
        Ok(self.revision())
    }

    pub(crate) fn range(&self, prefix: &str, options: &Range) -> Result<Page, StoreError> {
        let revision = options.at.unwrap_or(self.revision());
        self.check(revision)?;
        let empty = BTreeMap::new();
        let snapshot = if revision.0 == 0 { &empty } else { &self.snapshots[revision.0 as usize - 1] };
        let mut entries: Vec<Entry> = snapshot
            .values()
            .filter(|entry| entry.key.starts_with(prefix))
            .filter(|entry| options.after.as_ref().is_none_or(|after| entry.key > *after))
            .cloned()
            .collect();
        let remaining = entries.len().saturating_sub(options.limit.unwrap_or(usize::MAX));
        entries.truncate(entries.len() - remaining);
        Ok(Page { entries, revision, more: remaining > 0, remaining })
    }

    pub(crate) fn watch(&self, from: Revision) -> Result<(), StoreError> {
        self.check(from)
    }

    /// The events below a prefix of the first commit after a revision that has any.
    pub(crate) fn next(&self, prefix: &str, after: Revision) -> Option<Vec<Event>> {
        self.events.iter().skip(after.0 as usize).find_map(|events| {
            let below: Vec<Event> =
                events.iter().filter(|event| event.key.starts_with(prefix)).cloned().collect();
            (!below.is_empty()).then_some(below)
        })
    }

    pub(crate) fn compact(&mut self, to: Revision) -> Result<(), StoreError> {
        if to > self.revision() {
            return Err(StoreError::Future { current: self.revision() });
        }
        self.compacted = self.compacted.max(to);
        Ok(())
    }

    /// How many events came after a revision.
    pub(crate) fn events_after(&self, after: Revision) -> usize {
        self.events.iter().skip(after.0 as usize).map(Vec::len).sum()
    }
}

/// A store that can be closed and opened again, if its kind can.
pub(crate) struct Subject {
    store: Option<Arc<dyn RevisionedStore>>,
    file: Option<(tempfile::TempDir, PathBuf)>,
    retention: Retention,
}

impl Subject {
    pub(crate) fn memory(retention: Retention) -> Self {
        Subject { store: Some(Arc::new(MemoryStore::new(retention))), file: None, retention }
    }

    pub(crate) fn redb(retention: Retention) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data/store.redb");
        let store = RedbStore::open(&file, retention).unwrap();
        Subject { store: Some(Arc::new(store)), file: Some((directory, file)), retention }
    }

    pub(crate) fn both() -> [Subject; 2] {
        [Subject::memory(Retention::default()), Subject::redb(Retention::default())]
    }

    pub(crate) fn store(&self) -> Arc<dyn RevisionedStore> {
        Arc::clone(self.store.as_ref().unwrap())
    }

    /// Does nothing to a store in memory. Nobody else may hold the store.
    pub(crate) fn reopen(&mut self) -> bool {
        let Some((_, file)) = &self.file else { return false };
        self.store = None;
        self.store = Some(Arc::new(RedbStore::open(file, self.retention).unwrap()));
        true
    }
}

/// A small pseudo-random sequence (xorshift64*), seeded; a failing test prints its seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.max(1))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

pub(crate) fn seed() -> u64 {
    std::env::var("HORCHESTRA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    })
}

/// How many rounds a random test runs: few normally, as many as `HORCHESTRA_SOAK` says.
pub(crate) fn rounds(normal: u32) -> u32 {
    std::env::var("HORCHESTRA_SOAK").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(normal)
}
