//! Watches under load and at their end, and the bounds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod store_support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use horchestra_controller::store::{
    Expect, MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_WRITES, MemoryStore, Range, Retention, Revision,
    RevisionedStore, StoreError, WatchItem,
};
use store_support::{Subject, delete, put};

const WRITERS: usize = 6;
const WRITES: usize = 60;

/// Counts up in a key of its own and in one that all share, by compare-and-swap.
async fn count(store: Arc<dyn RevisionedStore>, writer: usize) -> Vec<Revision> {
    let own = format!("own/{writer}");
    let mut revisions = Vec::new();
    for n in 0..WRITES {
        let revision = loop {
            let shared = store.get("shared").await.unwrap();
            let (expect, value) = shared.map_or((Expect::Absent, 0u64), |entry| {
                (Expect::At(entry.modified), u64::from_le_bytes(entry.value[..].try_into().unwrap()) + 1)
            });
            let writes = vec![
                put("shared", value.to_le_bytes().to_vec(), expect),
                put(&own, vec![n as u8], Expect::Any),
            ];
            match store.write(writes).await {
                Ok(revision) => break revision,
                Err(StoreError::Conflict { key, .. }) => assert_eq!(&*key, "shared"),
                Err(error) => panic!("{error}"),
            }
        };
        // Read your own write.
        assert!(store.revision() >= revision);
        assert_eq!(store.get(&own).await.unwrap().unwrap().modified, revision);
        revisions.push(revision);
    }
    revisions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_lose_nothing_and_watchers_see_all_in_order() {
    for subject in Subject::both() {
        let store = subject.store();
        let mut watchers = Vec::new();
        for prefix in ["", "own/", "own/3", "shared"] {
            let mut watch = store.watch(prefix, Revision::FIRST).await.unwrap();
            watchers.push((
                prefix,
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    let wanted = WRITES * if prefix == "own/3" { 1 } else { WRITERS };
                    while seen.len() < wanted {
                        let Some(Ok(WatchItem::Events(events))) = watch.next().await else { panic!("ended") };
                        seen.push(events);
                    }
                    assert_eq!(watch.next().now_or_never(), None, "a duplicate");
                    seen
                }),
            ));
        }
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(count(Arc::clone(&store), writer))).collect();
        let mut acknowledged = Vec::new();
        for writer in writers {
            let revisions = writer.await.unwrap();
            assert!(revisions.is_sorted());
            acknowledged.extend(revisions);
        }
        acknowledged.sort();
        let expected: Vec<Revision> = (2..2 + (WRITERS * WRITES) as u64).map(Revision).collect();
        assert_eq!(acknowledged, expected, "each revision once, without a gap");
        let shared = store.get("shared").await.unwrap().unwrap();
        assert_eq!(shared.value[..], ((WRITERS * WRITES) as u64 - 1).to_le_bytes(), "no update was lost");
        for (prefix, watcher) in watchers {
            let seen = watcher.await.unwrap();
            assert!(seen.is_sorted_by(|a, b| a[0].revision < b[0].revision), "{prefix}");
            let mut last: BTreeMap<Arc<str>, _> = BTreeMap::new();
            for event in seen.iter().flat_map(|events| events.iter()) {
                assert!(event.key.starts_with(prefix));
                assert_eq!(event.previous, last.insert(Arc::clone(&event.key), event.entry()).flatten());
            }
        }
    }
}

#[tokio::test]
async fn a_slow_watcher_is_cut_off_and_an_idle_one_is_not() {
    let retention = Retention { max_events: 16, ..Retention::default() };
    for subject in [Subject::memory(retention), Subject::redb(retention)] {
        let store = subject.store();
        let mut slow = store.watch("busy/", store.revision()).await.unwrap();
        let mut idle = store.watch("idle/", store.revision()).await.unwrap();
        for n in 0..100u8 {
            store.write(vec![put("busy/key", vec![n], Expect::Any)]).await.unwrap();
        }
        assert_eq!(slow.delivered(), Revision(1));
        let compacted = store.compacted();
        assert!(compacted > Revision(80), "{compacted}");
        let lagged = StoreError::Lagged { behind: Revision(2), compacted };
        assert_eq!(slow.next().await, Some(Err(lagged)));
        assert_eq!(slow.next().await, None);
        assert_eq!(idle.delivered(), store.revision());
        store.write(vec![put("idle/key", "x", Expect::Any)]).await.unwrap();
        assert!(
            matches!(idle.next().await, Some(Ok(WatchItem::Events(events))) if &*events[0].key == "idle/key")
        );
        let gone = store.watch("idle/", Revision(5)).await.unwrap_err();
        assert_eq!(gone, StoreError::Gone { compacted: store.compacted() });
    }
}

/// etcd lost the deletion when the compaction was at its revision.
#[tokio::test]
async fn a_deletion_survives_a_compaction_just_before_it() {
    for mut subject in Subject::both() {
        let store = subject.store();
        store.write(vec![put("k", "1", Expect::Absent)]).await.unwrap();
        let deleted = store.write(vec![delete("k", Expect::Any)]).await.unwrap();
        store.compact(Revision(deleted.0 - 1)).await.unwrap();
        drop(store);
        subject.reopen();
        let store = subject.store();
        let mut watch = store.watch("k", Revision(deleted.0 - 1)).await.unwrap();
        let Some(Ok(WatchItem::Events(events))) = watch.next().await else { panic!("no event") };
        assert_eq!((events[0].revision, &events[0].value), (deleted, &None));
        assert_eq!(events[0].previous.as_ref().unwrap().value, "1");
        drop((watch, store));
        subject.store().compact(deleted).await.unwrap();
        subject.reopen();
        let store = subject.store();
        assert_eq!(store.revision(), deleted, "the revision did not turn back with its last record");
        let next = store.write(vec![put("k", "2", Expect::Absent)]).await.unwrap();
        assert_eq!(next, deleted.next());
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_only_when_all_is_delivered() {
    let store = MemoryStore::default();
    let mut watch = store.watch("a/", store.revision()).await.unwrap().bookmarks(Duration::from_secs(60));
    store.write(vec![put("b/1", "", Expect::Any)]).await.unwrap();
    let other = store.write(vec![put("b/2", "", Expect::Any)]).await.unwrap();
    assert_eq!(StreamExt::next(&mut watch).await, Some(Ok(WatchItem::Progress(other))));
    tokio::time::advance(Duration::from_secs(180)).await;
    assert_eq!(watch.next().now_or_never(), None, "nothing new, no bookmark");
    let own = store.write(vec![put("a/1", "", Expect::Any)]).await.unwrap();
    let last = store.write(vec![put("b/1", "", Expect::Any)]).await.unwrap();
    tokio::time::advance(Duration::from_secs(180)).await;
    let Some(Ok(WatchItem::Events(events))) = watch.next().await else { panic!("no events first") };
    assert_eq!(events[0].revision, own);
    assert_eq!(watch.next().await, Some(Ok(WatchItem::Progress(last))));
}

#[tokio::test]
async fn closing_ends_watches_after_what_they_had_to_get() {
    for subject in Subject::both() {
        let store = subject.store();
        let mut watch = store.watch("", store.revision()).await.unwrap();
        let mut waiting = store.watch("other", store.revision()).await.unwrap();
        let waiting = tokio::spawn(async move { waiting.next().await });
        tokio::task::yield_now().await;
        store.write(vec![put("k", "v", Expect::Any)]).await.unwrap();
        drop((store, subject));
        assert!(matches!(watch.next().await, Some(Ok(WatchItem::Events(_)))));
        assert_eq!(watch.next().await, Some(Err(StoreError::Closed)));
        assert_eq!(watch.next().await, None);
        assert_eq!(waiting.await.unwrap(), Some(Err(StoreError::Closed)));
    }
}

#[tokio::test]
async fn bounds() {
    for subject in Subject::both() {
        let store = subject.store();
        let largest = Bytes::from(vec![7; MAX_VALUE_BYTES]);
        store.write(vec![put(&"k".repeat(MAX_KEY_BYTES), largest.clone(), Expect::Any)]).await.unwrap();
        let mut larger = largest.to_vec();
        larger.push(7);
        let many = (0..=MAX_WRITES).map(|n| put(&format!("{n}"), "", Expect::Any)).collect();
        let huge = (0..11).map(|n| put(&format!("{n}"), largest.clone(), Expect::Any)).collect();
        let before = store.revision();
        for writes in [
            vec![put("k", larger, Expect::Any)],
            vec![put(&"k".repeat(MAX_KEY_BYTES + 1), "", Expect::Any)],
            many,
            huge,
        ] {
            let error = store.write(writes).await.unwrap_err();
            assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
        }
        assert_eq!(store.revision(), before);
        assert_eq!(store.range("", Range::default()).await.unwrap().entries.len(), 1);
    }
}

#[tokio::test]
async fn the_log_is_bounded_in_bytes() {
    let retention = Retention { max_bytes: 100_000, ..Retention::default() };
    let store = MemoryStore::new(retention);
    for _ in 0..50 {
        store.write(vec![put("k", vec![0; 10_000], Expect::Any)]).await.unwrap();
        let kept = store.revision().0 - store.compacted().0.max(1);
        assert!(kept * 10_000 <= 100_000, "{kept} values are kept");
    }
    assert!(store.compacted() > Revision(40));
}
