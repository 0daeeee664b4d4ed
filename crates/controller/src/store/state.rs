use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::batch::Batch;
use super::commit::Commit;
use super::{Entry, Event, Retention, Revision, StoreError};

/// The present, the history that is kept, and the rules between them. No IO and no clock: both stores drive this.
///
/// Memory: about 200 bytes a key beside its key and value, and the same for an event in the log.
///
/// The log holds every revision after `compacted` exactly once and without a gap, which makes a lookup an index.
#[derive(Debug)]
pub(super) struct State {
    pub(super) retention: Retention,
    pub(super) current: BTreeMap<Arc<str>, Entry>,
    log: VecDeque<Commit>,
    log_events: usize,
    log_bytes: usize,
    revision: Revision,
    compacted: Revision,
    /// How many writes at or below `compacted` a disk still holds, which are the values of that time.
    base: u64,
}

impl State {
    pub(super) fn new(retention: Retention) -> Self {
        State {
            retention,
            current: BTreeMap::new(),
            log: VecDeque::new(),
            log_events: 0,
            log_bytes: 0,
            revision: Revision::FIRST,
            compacted: Revision::ZERO,
            base: 0,
        }
    }

    /// A state without history, to which the commits after `compacted` are applied next.
    pub(super) fn restored(retention: Retention, compacted: Revision, entries: Vec<Entry>) -> Self {
        let base = entries.len() as u64;
        State {
            current: entries.into_iter().map(|entry| (Arc::clone(&entry.key), entry)).collect(),
            revision: compacted.max(Revision::FIRST),
            compacted,
            base,
            ..State::new(retention)
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn log_events(&self) -> usize {
        self.log_events
    }

    pub(super) fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    pub(super) fn log(&self) -> impl Iterator<Item = &Commit> {
        self.log.iter()
    }

    /// Whether everything after a revision is still known.
    pub(super) fn check(&self, from: Revision) -> Result<(), StoreError> {
        if from > self.revision {
            // etcd once waited silently for a revision to come; after a restore it would then skip events.
            Err(StoreError::Future { current: self.revision })
        } else if from < self.compacted {
            Err(StoreError::Gone { compacted: self.compacted })
        } else {
            Ok(())
        }
    }

    /// The commits after a revision, oldest first. [`check`](Self::check) it before.
    pub(super) fn commits_after(&self, from: Revision) -> impl Iterator<Item = &Commit> {
        let first = self.log.front().map_or(self.revision.next(), |commit| commit.revision);
        let skip = usize::try_from(from.next().0.saturating_sub(first.0)).unwrap_or(usize::MAX);
        self.log.range(skip.min(self.log.len())..)
    }

    /// The first commit after a revision that touches a prefix.
    pub(super) fn next_touching(&self, from: Revision, prefix: &str) -> Option<&Commit> {
        self.commits_after(from).find(|commit| commit.touches(prefix))
    }

    /// Takes over what was staged on this very state.
    pub(super) fn apply(&mut self, batch: &Batch) {
        for commit in &batch.commits {
            for event in commit.events.iter() {
                self.set(event);
            }
            self.log_events += commit.events.len();
            self.log_bytes += commit.bytes();
            self.revision = commit.revision;
            self.log.push_back(commit.clone());
        }
        let Some(compaction) = &batch.compaction else { return };
        while let Some(commit) = self.log.pop_front_if(|commit| commit.revision <= compaction.to) {
            self.log_events -= commit.events.len();
            self.log_bytes -= commit.bytes();
        }
        self.compacted = compaction.to;
        self.base = compaction.base;
    }

    fn set(&mut self, event: &Event) {
        match event.entry() {
            Some(entry) => {
                self.current.insert(Arc::clone(&entry.key), entry);
            }
            None => {
                self.current.remove(&event.key);
            }
        }
    }
}
