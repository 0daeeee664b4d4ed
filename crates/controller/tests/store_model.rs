//! Both stores do what one simple model does, whatever they are asked in whatever order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod store_support;

use std::sync::Arc;

use futures::FutureExt;
use horchestra_controller::store::{
    Expect, Range, Retention, Revision, RevisionedStore, StoreError, Watch, WatchItem, Write,
};
use proptest::prelude::*;
use store_support::{Model, Subject, delete, put, rounds};

const KEYS: [&str; 9] = ["", "a", "a/1", "a/2", "a/\u{10ffff}", "a0", "b/1", "b/é", "\u{10ffff}"];
const PREFIXES: [&str; 8] = ["", "a", "a/", "a/1", "b/", "c", "\u{10ffff}", "b/é/"];

#[derive(Debug, Clone, Copy)]
enum Wish {
    Any,
    Absent,
    Current,
    Older(u64),
}

#[derive(Debug, Clone)]
enum Op {
    Write(Vec<(usize, Option<Vec<u8>>, Wish)>),
    Get(usize),
    Range { prefix: usize, after: Option<usize>, limit: Option<usize>, back: Option<u64> },
    Watch { prefix: usize, back: u64 },
    Poll { watch: usize, items: usize },
    Compact { back: u64 },
    Future(u64),
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let wish = prop_oneof![
        4 => Just(Wish::Any),
        1 => Just(Wish::Absent),
        3 => Just(Wish::Current),
        1 => (0..5u64).prop_map(Wish::Older),
    ];
    let value = proptest::option::weighted(0.7, proptest::collection::vec(any::<u8>(), 0..5));
    let write = (0..KEYS.len(), value, wish);
    prop_oneof![
        12 => proptest::collection::vec(write, 0..4).prop_map(Op::Write),
        2 => (0..KEYS.len()).prop_map(Op::Get),
        5 => (0..PREFIXES.len(), proptest::option::of(0..KEYS.len()), proptest::option::of(0..5usize), proptest::option::of(0..12u64))
            .prop_map(|(prefix, after, limit, back)| Op::Range { prefix, after, limit, back }),
        3 => (0..PREFIXES.len(), 0..12u64).prop_map(|(prefix, back)| Op::Watch { prefix, back }),
        4 => (0..4usize, 1..4usize).prop_map(|(watch, items)| Op::Poll { watch, items }),
        1 => (0..12u64).prop_map(|back| Op::Compact { back }),
        1 => (1..3u64).prop_map(Op::Future),
        1 => Just(Op::Reopen),
    ]
}

struct Watching {
    prefix: &'static str,
    seen: Revision,
    watch: Watch,
}

struct Run {
    subject: Subject,
    model: Model,
    watches: Vec<Watching>,
    max_events: usize,
}

fn back(revision: Revision, by: u64) -> Revision {
    Revision(revision.0.saturating_sub(by))
}

impl Run {
    async fn step(&mut self, op: &Op) {
        let store = self.subject.store();
        let revision = self.model.revision();
        match op {
            Op::Write(writes) => {
                let writes: Vec<Write> =
                    writes.iter().map(|(key, value, wish)| self.write(*key, value, *wish)).collect();
                let events = writes.len();
                assert_eq!(store.write(writes.clone()).await, self.model.write(&writes), "{writes:?}");
                self.retained(&store, events);
            }
            Op::Get(key) => assert_eq!(store.get(KEYS[*key]).await.unwrap(), self.model.get(KEYS[*key])),
            Op::Range { prefix, after, limit, back: by } => {
                let after = after.map(|after| KEYS[after].into());
                let range = Range { after, limit: *limit, at: by.map(|by| back(revision, by)) };
                let prefix = PREFIXES[*prefix];
                assert_eq!(
                    store.range(prefix, range.clone()).await,
                    self.model.range(prefix, &range),
                    "{prefix} {range:?}"
                );
            }
            Op::Watch { prefix, back: by } => {
                let (prefix, from) = (PREFIXES[*prefix], back(revision, *by));
                match store.watch(prefix, from).await {
                    Ok(watch) => {
                        assert_eq!(self.model.watch(from), Ok(()));
                        self.watches.truncate(3);
                        self.watches.insert(0, Watching { prefix, seen: from, watch });
                    }
                    Err(error) => assert_eq!(self.model.watch(from), Err(error)),
                }
            }
            Op::Poll { watch, items } => {
                for _ in 0..*items {
                    self.poll(*watch);
                }
            }
            Op::Compact { back: by } => {
                let to = back(revision, *by);
                assert_eq!(store.compact(to).await, self.model.compact(to));
            }
            Op::Future(by) => {
                let (at, future) = (Revision(revision.0 + by), StoreError::Future { current: revision });
                assert_eq!(store.watch("", at).await.map(|_| ()), Err(future.clone()));
                assert_eq!(
                    store.range("", Range { at: Some(at), ..Range::default() }).await,
                    Err(future.clone())
                );
                assert_eq!(store.compact(at).await, Err(future));
            }
            Op::Reopen => {
                drop(store);
                if self.subject.reopen() {
                    for mut watching in self.watches.drain(..) {
                        // What was committed before is still delivered, then the watch ends.
                        let end = loop {
                            match watching
                                .watch
                                .next()
                                .now_or_never()
                                .expect("a closed store has no pending watch")
                            {
                                Some(Ok(WatchItem::Events(events))) => watching.seen = events[0].revision,
                                other => break other,
                            }
                        };
                        assert!(
                            matches!(end, Some(Err(StoreError::Closed | StoreError::Lagged { .. }))),
                            "{end:?}"
                        );
                        assert_eq!(watching.watch.next().now_or_never(), Some(None));
                    }
                }
            }
        }
        let store = self.subject.store();
        assert_eq!(store.revision(), self.model.revision());
        assert_eq!(store.compacted(), self.model.compacted);
    }

    fn write(&self, key: usize, value: &Option<Vec<u8>>, wish: Wish) -> Write {
        let key = KEYS[key];
        let expect = match (wish, self.model.get(key)) {
            (Wish::Any, _) => Expect::Any,
            (Wish::Absent, _) => Expect::Absent,
            (Wish::Current, Some(entry)) => Expect::At(entry.modified),
            (Wish::Current, None) => Expect::Absent,
            (Wish::Older(by), _) => Expect::At(back(self.model.revision(), by)),
        };
        match value {
            Some(value) => put(key, value.clone(), expect),
            None => delete(key, expect),
        }
    }

    /// Automatic compaction is the store's choice, within its bounds; from then on the model holds it to it.
    fn retained(&mut self, store: &Arc<dyn RevisionedStore>, events: usize) {
        let compacted = store.compacted();
        assert!(compacted >= self.model.compacted && compacted <= self.model.revision());
        if compacted > self.model.compacted {
            assert!(
                self.model.events_after(self.model.compacted) > self.max_events,
                "compacted without need"
            );
            self.model.compacted = compacted;
        }
        assert!(self.model.events_after(compacted) <= self.max_events + events, "the log is not bounded");
    }

    fn poll(&mut self, watch: usize) {
        let Some(watching) = self.watches.get_mut(watch) else { return };
        let expected = self.model.next(watching.prefix, watching.seen);
        let delivered = expected.as_ref().map_or(self.model.revision(), |events| back(events[0].revision, 1));
        assert_eq!(watching.watch.delivered(), delivered);
        let item = watching.watch.next().now_or_never();
        match expected {
            None => assert_eq!(item, None, "nothing to deliver"),
            Some(events) if events[0].revision <= self.model.compacted => {
                let lagged =
                    StoreError::Lagged { behind: events[0].revision, compacted: self.model.compacted };
                assert_eq!(item, Some(Some(Err(lagged))));
                assert_eq!(watching.watch.next().now_or_never(), Some(None));
                self.watches.remove(watch);
            }
            Some(events) => {
                watching.seen = events[0].revision;
                assert_eq!(item, Some(Some(Ok(WatchItem::Events(events.into())))));
            }
        }
    }

    fn drain(&mut self) {
        while !self.watches.is_empty() {
            let before = (self.watches.len(), self.watches[0].seen);
            self.poll(0);
            if before == (self.watches.len(), self.watches.first().map_or(before.1, |watching| watching.seen))
            {
                self.watches.remove(0);
            }
        }
    }
}

fn check(make: fn(Retention) -> Subject, cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let small = proptest::bool::weighted(0.5);
    proptest!(config, |(ops in proptest::collection::vec(op(), 1..80), small in small)| {
        let max_events = if small { 8 } else { 1000 };
        let retention = Retention { max_events, ..Retention::default() };
        let mut run = Run { subject: make(retention), model: Model::new(), watches: Vec::new(), max_events };
        runtime.block_on(async {
            for op in &ops {
                run.step(op).await;
            }
            run.drain();
            run.step(&Op::Reopen).await;
            let all = run.subject.store().range("", Range::default()).await;
            assert_eq!(all, run.model.range("", &Range::default()));
        });
    });
}

#[test]
fn memory_is_the_model() {
    check(Subject::memory, rounds(300));
}

#[test]
fn redb_is_the_model() {
    check(Subject::redb, rounds(24));
}
