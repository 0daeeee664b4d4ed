use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTable};

use super::database::{BASE, COMPACTED, FORMAT, FORMAT_VERSION, META, REVISIONS};
use super::record::Record;
use crate::store::batch::Batch;
use crate::store::commit::Commit;
use crate::store::state::State;
use crate::store::{Entry, Event, Retention, Revision};

/// Why a file's contents are refused.
pub(super) enum LoadError {
    /// It was written by a program that knows more.
    Newer { version: u64 },
    /// It is not what a store writes.
    Damaged(String),
}

impl LoadError {
    fn damaged(reason: impl Display) -> Self {
        LoadError::Damaged(reason.to_string())
    }
}

/// Builds the state by doing all commits of the log again, checking that the log has no gap.
pub(super) fn load(transaction: &ReadTransaction, retention: Retention) -> Result<State, LoadError> {
    let meta = transaction.open_table(META).map_err(LoadError::damaged)?;
    let number = |name: &str| -> Result<u64, LoadError> {
        let value = meta.get(name).map_err(LoadError::damaged)?;
        value
            .map(|value| value.value())
            .ok_or_else(|| LoadError::damaged(format_args!("`{name}` is missing")))
    };
    match number(FORMAT)? {
        FORMAT_VERSION => {}
        version if version > FORMAT_VERSION => return Err(LoadError::Newer { version }),
        version => return Err(LoadError::damaged(format_args!("there is no format version {version}"))),
    }
    let (compacted, base) = (Revision(number(COMPACTED)?), number(BASE)?);

    let table = transaction.open_table(REVISIONS).map_err(LoadError::damaged)?;
    let mut loader = Loader { compacted, entries: Vec::new(), state: None, retention, pending: Vec::new() };
    for record in table.iter().map_err(LoadError::damaged)? {
        let (key, value) = record.map_err(LoadError::damaged)?;
        let (revision, key) = key.value();
        let record = Record::decode(value.value()).ok_or_else(|| {
            LoadError::damaged(format_args!("the record of `{key}` at {revision} is unreadable"))
        })?;
        loader.take(Revision(revision), key, &record)?;
    }
    let state = loader.finish(base)?;
    Ok(state)
}

struct Loader {
    compacted: Revision,
    entries: Vec<Entry>,
    /// From the first record after `compacted` on.
    state: Option<State>,
    retention: Retention,
    pending: Vec<Event>,
}

impl Loader {
    fn take(&mut self, revision: Revision, key: &str, record: &Record<'_>) -> Result<(), LoadError> {
        let wrong =
            |what: &str| Err(LoadError::damaged(format_args!("the record of `{key}` at {revision} {what}")));
        let value = record.value.map(Bytes::copy_from_slice);
        if revision <= self.compacted {
            let Some(value) = value else { return wrong("is a deletion that should be compacted") };
            self.entries.push(Entry { key: key.into(), value, created: record.created, modified: revision });
            return Ok(());
        }
        let compacted = self.compacted;
        let (retention, entries) = (self.retention, &mut self.entries);
        let state =
            self.state.get_or_insert_with(|| State::restored(retention, compacted, std::mem::take(entries)));
        if revision != state.revision().next() {
            return wrong(&format!("follows {}, between them something is missing", state.revision()));
        }
        let previous = state.current.get(key).cloned();
        if record.created != previous.as_ref().map_or(revision, |previous| previous.created) {
            return wrong("does not continue what was there before");
        }
        if value.is_none() && previous.is_none() {
            return wrong("deletes what is not there");
        }
        self.pending.push(Event { revision, key: Arc::from(key), value, previous });
        if self.pending.len() == record.events as usize {
            let events = std::mem::take(&mut self.pending).into();
            state.apply(&Batch {
                commits: vec![Commit { revision, at: record.at, events }],
                compaction: None,
            });
        }
        Ok(())
    }

    fn finish(mut self, base: u64) -> Result<State, LoadError> {
        if let Some(event) = self.pending.first() {
            return Err(LoadError::damaged(format_args!("the commit {} is not complete", event.revision)));
        }
        let state = self.state.take();
        let state = state.unwrap_or_else(|| State::restored(self.retention, self.compacted, self.entries));
        if state.base() != base {
            return Err(LoadError::damaged(format_args!(
                "of {base} values older than the log it holds {} with distinct keys",
                state.base()
            )));
        }
        Ok(state)
    }
}
