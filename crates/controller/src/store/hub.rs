use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures::task::AtomicWaker;

use super::batch::{Batch, Stage};
use super::snapshot;
use super::state::State;
use super::{Entry, Page, Range, Revision, StoreError, Watch};

/// The state with its watchers: where commits become visible, to all readers at one moment.
#[derive(Debug)]
pub(super) struct Hub {
    inner: RwLock<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) state: State,
    pub(super) closed: bool,
    /// By prefix, so that a commit costs what it touches and not what is watched.
    watchers: BTreeMap<Arc<str>, Vec<Arc<Watcher>>>,
}

/// Where a watch stands. There is no queue: it reads the log, so that a slow one costs nothing and skips nothing.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) prefix: Arc<str>,
    /// The first revision with an event that is not delivered; 0 when there is none, and then everything up to the newest
    /// revision is. Changed by the hub under the write lock, by the watch under the read lock.
    pub(super) behind: AtomicU64,
    pub(super) waker: AtomicWaker,
}

impl Hub {
    pub(super) fn new(state: State) -> Arc<Self> {
        Arc::new(Hub { inner: RwLock::new(Inner { state, closed: false, watchers: BTreeMap::new() }) })
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<RwLockReadGuard<'_, Inner>, StoreError> {
        let inner = self.read();
        if inner.closed { Err(StoreError::Closed) } else { Ok(inner) }
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.open()?.state.current.get(key).cloned())
    }

    pub(super) fn range(&self, prefix: &str, options: &Range) -> Result<Page, StoreError> {
        snapshot::range(&self.open()?.state, prefix, options)
    }

    pub(super) fn watch(self: &Arc<Self>, prefix: &str, from: Revision) -> Result<Watch, StoreError> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(StoreError::Closed);
        }
        inner.state.check(from)?;
        let prefix: Arc<str> = prefix.into();
        let behind = inner.state.next_touching(from, &prefix).map_or(0, |commit| commit.revision.0);
        let watcher = Arc::new(Watcher { prefix, behind: AtomicU64::new(behind), waker: AtomicWaker::new() });
        inner.watchers.entry(Arc::clone(&watcher.prefix)).or_default().push(Arc::clone(&watcher));
        drop(inner);
        Ok(Watch::new(Arc::clone(self), watcher, from))
    }

    pub(super) fn unwatch(&self, watcher: &Arc<Watcher>) {
        let mut inner = self.lock();
        if let Some(watchers) = inner.watchers.get_mut(&watcher.prefix) {
            watchers.retain(|other| !Arc::ptr_eq(other, watcher));
            if watchers.is_empty() {
                inner.watchers.remove(&watcher.prefix);
            }
        }
    }

    /// Stages a batch without making it visible. Only one thread may stage and [`publish`](Self::publish).
    pub(super) fn stage<R>(&self, stage: impl FnOnce(Stage<'_>) -> R) -> R {
        stage(Stage::new(&self.read().state))
    }

    /// Makes a batch visible.
    pub(super) fn publish(&self, batch: &Batch) {
        let woken = self.lock().apply(batch);
        wake(&woken);
    }

    /// Stages and publishes in one step, for a store that has no disk to wait for.
    pub(super) fn commit<R>(&self, stage: impl FnOnce(Stage<'_>) -> (R, Batch)) -> Result<R, StoreError> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(StoreError::Closed);
        }
        let (result, batch) = stage(Stage::new(&inner.state));
        let woken = inner.apply(&batch);
        drop(inner);
        wake(&woken);
        Ok(result)
    }

    /// Ends all watches, after what they have still to deliver.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let watchers: Vec<_> = inner.watchers.values().flatten().cloned().collect();
        drop(inner);
        wake(&watchers);
    }
}

impl Inner {
    fn apply(&mut self, batch: &Batch) -> Vec<Arc<Watcher>> {
        self.state.apply(batch);
        let mut woken = Vec::new();
        for event in batch.commits.iter().flat_map(|commit| commit.events.iter()) {
            for_prefixes(&self.watchers, &event.key, |watcher| {
                let first =
                    watcher.behind.compare_exchange(0, event.revision.0, Ordering::AcqRel, Ordering::Acquire);
                if first.is_ok() {
                    woken.push(Arc::clone(watcher));
                }
            });
        }
        woken
    }
}

fn wake(watchers: &[Arc<Watcher>]) {
    for watcher in watchers {
        watcher.waker.wake();
    }
}

/// Visits what is registered under a prefix of `key`, longest first.
///
/// `bound` is always a prefix of `key` that no match left is longer than. The greatest registered prefix up to it either
/// is a match, or whatever match is left is a prefix of what the two have in common.
fn for_prefixes<T>(map: &BTreeMap<Arc<str>, Vec<T>>, key: &str, mut visit: impl FnMut(&T)) {
    let mut bound = key;
    while let Some((prefix, items)) =
        map.range::<str, _>((Bound::Unbounded, Bound::Included(bound))).next_back()
    {
        let common = common(key, prefix);
        if common.len() < prefix.len() {
            bound = common;
            continue;
        }
        items.iter().for_each(&mut visit);
        let mut shorter = common.chars();
        if shorter.next_back().is_none() {
            break;
        }
        bound = shorter.as_str();
    }
}

fn common<'a>(key: &'a str, other: &str) -> &'a str {
    let end = key.char_indices().zip(other.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    key.get(..end.unwrap_or(key.len().min(other.len()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn finds_every_registered_prefix(prefixes in proptest::collection::btree_set("[abé]{0,4}", 0..12), key in "[abé]{0,6}") {
            let map: BTreeMap<Arc<str>, Vec<String>> = prefixes.iter().map(|p| (p.as_str().into(), vec![p.clone()])).collect();
            let mut found = Vec::new();
            for_prefixes(&map, &key, |p| found.push(p.clone()));
            let mut expected: Vec<String> = prefixes.into_iter().filter(|p| key.starts_with(p.as_str())).collect();
            expected.sort_by_key(|p| std::cmp::Reverse(p.len()));
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
