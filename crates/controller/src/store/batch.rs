use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::commit::Commit;
use super::state::State;
use super::transaction::Transaction;
use super::{Entry, Event, Expect, Revision, StoreError, Write};

/// What is to be committed together: on a disk in one transaction, to readers at one moment.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) commits: Vec<Commit>,
    pub(super) compaction: Option<Compaction>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.compaction.is_none()
    }
}

/// What is to be forgotten.
#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) to: Revision,
    /// The writes, by revision and key, that no revision from `to` on shows.
    pub(super) superseded: Vec<(Revision, Arc<str>)>,
    /// How many writes at or below `to` stay.
    pub(super) base: u64,
}

/// A batch in the making. Preconditions are checked in order, against the state and the earlier writes of the batch; a
/// write that fails leaves no trace.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    state: &'a State,
    changed: HashMap<Arc<str>, Option<Entry>>,
    commits: Vec<Commit>,
    revision: Revision,
    compact: Option<Revision>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Stage {
            state,
            changed: HashMap::new(),
            commits: Vec::new(),
            revision: state.revision(),
            compact: None,
        }
    }

    fn current(&self, key: &str) -> Option<&Entry> {
        match self.changed.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.state.current.get(key),
        }
    }

    /// The revision that the writes get; the newest one if they change nothing.
    pub(super) fn write(
        &mut self,
        transaction: Transaction,
        now: SystemTime,
    ) -> Result<Revision, StoreError> {
        let writes = transaction.into_writes();
        for write in &writes {
            let current = self.current(write.key());
            let holds = match write.expect() {
                Expect::Any => true,
                Expect::Absent => current.is_none(),
                Expect::At(revision) => current.is_some_and(|entry| entry.modified == revision),
            };
            if !holds {
                return Err(StoreError::Conflict { key: Arc::clone(write.key()), current: current.cloned() });
            }
        }
        let revision = self.revision.next();
        let mut events = Vec::with_capacity(writes.len());
        for write in writes {
            let previous = self.current(write.key()).cloned();
            let event = match write {
                // Copied: the caller's bytes are often a piece of a large request, which would be kept with it.
                Write::Put { key, value, .. } => {
                    Event { revision, key, value: Some(Bytes::copy_from_slice(&value)), previous }
                }
                Write::Delete { key, .. } if previous.is_some() => {
                    Event { revision, key, value: None, previous }
                }
                Write::Delete { .. } => continue,
            };
            self.changed.insert(Arc::clone(&event.key), event.entry());
            events.push(event);
        }
        if !events.is_empty() {
            self.revision = revision;
            self.commits.push(Commit { revision, at: now, events: events.into() });
        }
        Ok(self.revision)
    }

    /// Forgets the history before a revision that is committed already. What is compacted already stays so.
    pub(super) fn compact(&mut self, to: Revision) -> Result<(), StoreError> {
        if to > self.state.revision() {
            return Err(StoreError::Future { current: self.state.revision() });
        }
        self.compact = self.compact.max(Some(to));
        Ok(())
    }

    pub(super) fn finish(self, now: SystemTime) -> Batch {
        let to = self.compact.max(self.beyond_retention(now)).filter(|to| *to > self.state.compacted());
        Batch { compaction: to.map(|to| compaction(self.state, to)), commits: self.commits }
    }

    /// How far to compact so that the log, with what is staged, is within its bounds. Never into what is staged.
    fn beyond_retention(&self, now: SystemTime) -> Option<Revision> {
        let retention = self.state.retention;
        let mut events =
            self.state.log_events() + self.commits.iter().map(|commit| commit.events.len()).sum::<usize>();
        let mut bytes = self.state.log_bytes() + self.commits.iter().map(Commit::bytes).sum::<usize>();
        let age = |commit: &Commit| now.duration_since(commit.at).unwrap_or_default();
        let aged = |commit: &Commit, eighths: u32| {
            retention.max_age.is_some_and(|max| age(commit) > max + max / 8 * eighths)
        };
        let over = events > retention.max_events
            || bytes > retention.max_bytes
            || self.state.log().next().is_some_and(|oldest| aged(oldest, 1));
        if !over {
            return None;
        }
        let (max_events, max_bytes) = (retention.max_events / 8 * 7, retention.max_bytes / 8 * 7);
        let mut to = None;
        for commit in self.state.log() {
            if events <= max_events && bytes <= max_bytes && !aged(commit, 0) {
                break;
            }
            events -= commit.events.len();
            bytes -= commit.bytes();
            to = Some(commit.revision);
        }
        to
    }
}

fn compaction(state: &State, to: Revision) -> Compaction {
    let mut superseded = Vec::new();
    let mut records = state.base();
    for event in
        state.log().take_while(|commit| commit.revision <= to).flat_map(|commit| commit.events.iter())
    {
        records += 1;
        if let Some(previous) = &event.previous {
            superseded.push((previous.modified, Arc::clone(&event.key)));
        }
        if event.value.is_none() {
            superseded.push((event.revision, Arc::clone(&event.key)));
        }
    }
    Compaction { to, base: records - superseded.len() as u64, superseded }
}
