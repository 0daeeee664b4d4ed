//! A process that writes under load is killed at random points. What it was told is written is there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod store_support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use horchestra_controller::store::{
    Expect, RedbStore, Retention, Revision, RevisionedStore, StoreError, WatchItem,
};
use store_support::{Dice, delete, put, rounds, seed};

const CHILD: &str = "HORCHESTRA_TEST_KILLED";
const WRITERS: u64 = 6;
const KEYS: u64 = 20;
/// Small, so that the store compacts all the time by itself.
const RETENTION: Retention = Retention { max_events: 200, max_bytes: 64 * 1024 * 1024, max_age: None };

/// Writes for ever; a line for each acknowledged change: revision, key, value, or "-" for a deletion.
async fn write_for_ever(file: &Path) {
    let store = Arc::new(RedbStore::open(file, RETENTION).unwrap());
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut dice = Dice::new(seed() ^ (writer << 32));
            for n in 0u64.. {
                let key = format!("{}", dice.below(KEYS));
                let current = store.get(&key).await.unwrap();
                let expect = current.as_ref().map_or(Expect::Absent, |entry| Expect::At(entry.modified));
                let (value, write) = if dice.below(5) == 0 {
                    ("-".to_owned(), delete(&key, expect))
                } else {
                    // From a few bytes to several pages.
                    let value = format!(
                        "{writer}.{n}.{}",
                        "x".repeat(dice.below(if n % 20 == 0 { 20_000 } else { 300 }) as usize)
                    );
                    (value.clone(), put(&key, value, expect))
                };
                let change = current.is_some() || value != "-";
                match store.write(vec![write]).await {
                    Ok(revision) if change => println!("ack {revision} {key} {value}"),
                    Ok(_) | Err(StoreError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                if writer == 0 && n % 50 == 0 {
                    store.compact(Revision(store.revision().0 - 1)).await.unwrap();
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[test]
fn child() {
    let Some(file) = std::env::var_os(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(write_for_ever(Path::new(&file)));
}

/// What was acknowledged, by revision.
type Acknowledged = BTreeMap<u64, (String, String)>;

/// Runs a child, kills it some time after its first acknowledgement, and gives what it was acknowledged.
fn killed(file: &Path, after: Duration) -> Acknowledged {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
    let mut acknowledged = Acknowledged::new();
    let mut take = |line: Vec<u8>| {
        let line = String::from_utf8(line).unwrap();
        // The test harness may have begun the line.
        let Some((_, line)) = line.split_once("ack ") else { return false };
        // The last line may be cut by the kill, but then its revision is not: a key follows. Skip what is not whole.
        let mut words = line.splitn(3, ' ');
        let (Some(revision), Some(key), Some(value)) = (words.next(), words.next(), words.next()) else {
            return false;
        };
        let before = acknowledged.insert(revision.parse().unwrap(), (key.to_owned(), value.to_owned()));
        assert_eq!(before, None, "revision {revision} was given twice");
        true
    };
    while !take(lines.next().expect("the child ended by itself").unwrap()) {}
    let reader = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut rest: Vec<Vec<u8>> = lines.map(Result::unwrap).collect();
            // The kill may have cut it.
            rest.pop();
            rest
        });
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap()
    });
    for line in reader {
        take(line);
    }
    acknowledged
}

/// Opens what is left and compares it with all that was ever acknowledged.
async fn verify(file: &Path, acknowledged: &Acknowledged) -> Revision {
    let store = RedbStore::open(file, RETENTION).unwrap();
    let newest = Revision(*acknowledged.keys().last().unwrap());
    assert!(store.revision() >= newest, "{} is acknowledged, the store is at {}", newest, store.revision());

    // The log has each revision once, and at each acknowledged one what was acknowledged.
    let mut watch = store.watch("", store.compacted()).await.unwrap();
    let mut expected = store.compacted().max(Revision::FIRST);
    while expected < store.revision() {
        let Some(Ok(WatchItem::Events(events))) = watch.next().await else {
            panic!("the log ends at {expected}")
        };
        expected = expected.next();
        assert!(events.iter().all(|event| event.revision == expected), "{expected} is not in the log");
        if let Some((key, value)) = acknowledged.get(&expected.0) {
            let event = events.iter().find(|event| *event.key == **key).expect("the acknowledged change");
            assert_eq!(event.value.as_deref(), (value != "-").then_some(value.as_bytes()));
        }
    }

    // No key is older than its last acknowledged change.
    let last: BTreeMap<&str, (u64, &str)> = acknowledged
        .iter()
        .map(|(revision, (key, value))| (key.as_str(), (*revision, value.as_str())))
        .collect();
    for (key, (revision, value)) in last {
        match store.get(key).await.unwrap() {
            Some(entry) if entry.modified.0 == revision => assert_eq!(entry.value, value),
            Some(entry) => assert!(
                entry.modified.0 > revision,
                "`{key}` fell back from {revision} to {}",
                entry.modified
            ),
            // Deleted by that change, or by one that was written and not acknowledged any more.
            None => assert!(
                value == "-" || deleted_after(&store, key, revision).await,
                "`{key}` of {revision} is lost"
            ),
        }
    }
    store.revision()
}

async fn deleted_after(store: &RedbStore, key: &str, revision: u64) -> bool {
    if store.compacted().0 > revision {
        return true;
    }
    let mut watch = store.watch(key, Revision(revision)).await.unwrap();
    while watch.delivered() < store.revision() {
        let Some(Ok(WatchItem::Events(events))) = watch.next().await else { return false };
        if events.iter().any(|event| &*event.key == key && event.value.is_none()) {
            return true;
        }
    }
    false
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let seed = seed();
    println!("HORCHESTRA_SEED={seed}");
    let mut dice = Dice::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    let (mut all, mut newest, began) = (Acknowledged::new(), Revision::ZERO, Instant::now());
    for round in 0..rounds(10) {
        let acknowledged = killed(&file, Duration::from_millis(dice.below(250)));
        assert!(*acknowledged.keys().next().unwrap() > newest.0, "a revision was given again");
        all.extend(acknowledged);
        let revision = runtime.block_on(verify(&file, &all));
        assert!(revision > newest, "the revision turned back");
        newest = revision;
        println!("round {round}: {} acknowledged, at {revision}, {:?}", all.len(), began.elapsed());
    }
}
