//! The store's file: whose it is, what is refused, what damage does, and backups.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod store_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use horchestra_controller::store::{
    Entry, Expect, Range, RedbStore, Retention, Revision, RevisionedStore, StoreError,
};
use store_support::{Dice, delete, put, rounds, seed};

const CHILD: &str = "HORCHESTRA_TEST_OPEN";

fn open(file: &Path) -> Result<RedbStore, StoreError> {
    RedbStore::open(file, Retention::default())
}

/// The reason and the remedy of a refusal, which names the file.
fn refusal(file: &Path) -> (String, String) {
    match open(file).map(|_| ()) {
        Err(StoreError::Broken { file: named, reason, remedy }) => {
            assert_eq!(named, file);
            assert!(!reason.is_empty() && !remedy.is_empty());
            (reason, remedy)
        }
        other => panic!("{other:?}"),
    }
}

async fn all(store: &RedbStore) -> (Revision, Revision, Vec<Entry>) {
    let page = store.range("", Range::default()).await.unwrap();
    (page.revision, store.compacted(), page.entries)
}

/// Overwrites, deletes and compacts, so that the file has records of all sorts.
async fn fill(store: &RedbStore) {
    for n in 0..120u32 {
        store.write(vec![put(&format!("key/{}", n % 40), vec![n as u8; 700], Expect::Any)]).await.unwrap();
        if n % 7 == 0 {
            store.write(vec![delete(&format!("key/{}", n % 11), Expect::Any)]).await.unwrap();
        }
        if n == 80 {
            store.compact(Revision(60)).await.unwrap();
        }
    }
}

#[test]
fn only_the_owner_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a/b/store.redb");
    drop(open(&file).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&directory.path().join("a/b")), 0o700);
    assert_eq!(mode(&directory.path().join("a")), 0o700);
    assert_eq!(fs::read_dir(directory.path().join("a/b")).unwrap().count(), 1, "no draft is left");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&file).unwrap());
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn one_process_at_a_time() {
    if let Some(file) = std::env::var_os(CHILD) {
        let (reason, remedy) = refusal(Path::new(&file));
        println!("refused: {reason}: {remedy}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    let store = open(&file).unwrap();
    assert_eq!(refusal(&file).0, "another process has it open");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_process_at_a_time", "--nocapture"])
        .env(CHILD, &file)
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(said.contains("refused: another process has it open: stop that process"), "{said}");
    drop(store);
    open(&file).unwrap();
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let other: &[(&str, Vec<u8>)] = &[
        ("empty", Vec::new()),
        ("short", b"x".to_vec()),
        ("text", b"apiVersion: v1\nkind: List\n".repeat(1000)),
        ("zeros", vec![0; 1 << 20]),
        ("sqlite", [b"SQLite format 3\0".to_vec(), vec![1; 8192]].concat()),
    ];
    for (name, bytes) in other {
        let file = directory.path().join(name);
        fs::write(&file, bytes).unwrap();
        let (reason, remedy) = refusal(&file);
        assert!(remedy.contains("backup"), "{name}: {reason}: {remedy}");
        assert_eq!(&fs::read(&file).unwrap(), bytes, "{name} was changed");
    }
    assert_eq!(refusal(directory.path()).0, "it is not a regular file");
    let below_a_file = directory.path().join("text/store.redb");
    assert!(refusal(&below_a_file).1.contains("directory"));

    let foreign = directory.path().join("foreign.redb");
    const TABLE: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("other");
    let database = redb::Database::create(&foreign).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TABLE).unwrap().insert("a", "b").unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(refusal(&foreign).0.contains("meta"));
}

#[test]
fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    drop(open(&file).unwrap());
    const META: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
    let database = redb::Database::open(&file).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let (reason, remedy) = refusal(&file);
    assert!(reason.contains("format version 2") && remedy.contains("newer version"), "{reason}: {remedy}");
}

#[tokio::test]
async fn a_missing_record_is_found() {
    const REVISIONS: redb::TableDefinition<'_, (u64, &str), &[u8]> = redb::TableDefinition::new("revisions");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    let store = open(&file).unwrap();
    fill(&store).await;
    drop(store);
    let backup = fs::read(&file).unwrap();
    // From below the compacted revision, and from the log.
    for from in [2, 60, 61, 90] {
        fs::write(&file, &backup).unwrap();
        let database = redb::Database::open(&file).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(REVISIONS).unwrap();
        let key = table.extract_from_if((from, "").., |_, _| true).unwrap().next().unwrap().unwrap();
        assert!(key.0.value().0 >= from);
        drop(key);
        drop(table);
        transaction.commit().unwrap();
        drop(database);
        let (reason, _) = refusal(&file);
        let known = ["something is missing", "older than the log", "does not continue what was there"];
        assert!(known.iter().any(|known| reason.contains(known)), "{reason}");
    }
}

#[tokio::test]
async fn damage_is_an_error_or_harmless_and_never_a_panic() {
    let seed = seed();
    println!("HORCHESTRA_SEED={seed}");
    let mut dice = Dice::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb");
    let store = open(&file).unwrap();
    fill(&store).await;
    let whole = all(&store).await;
    drop(store);
    let intact = fs::read(&file).unwrap();
    let mut refused = 0;
    for round in 0..rounds(60) {
        let mut bytes = intact.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        match round % 3 {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => {
                let end = (at + 1 + dice.below(8192) as usize).min(bytes.len());
                bytes[at..end].fill(dice.below(256) as u8);
            }
            _ => bytes.truncate(at),
        }
        fs::write(&file, &bytes).unwrap();
        match open(&file) {
            Ok(store) => {
                assert_eq!(all(&store).await, whole, "silently other contents, round {round}, at {at}")
            }
            Err(StoreError::Broken { file: named, .. }) => {
                assert_eq!(named, file);
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("{refused} refused");
    assert!(refused > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_a_store_and_replaces_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("store.redb"), directory.path().join("backups/copy.redb"));
    let store = std::sync::Arc::new(open(&file).unwrap());
    fill(&store).await;
    let writer = tokio::spawn({
        let store = std::sync::Arc::clone(&store);
        async move {
            for n in 0..50u8 {
                store.write(vec![put("later", vec![n], Expect::Any)]).await.unwrap();
            }
        }
    });
    let before = store.revision();
    store.backup(&copy).await.unwrap();
    writer.await.unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let error = store.backup(&copy).await.unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");

    let backup = open(&copy).unwrap();
    let at = backup.revision();
    assert!(at >= before);
    let as_of = store.range("", Range { at: Some(at), ..Range::default() }).await.unwrap();
    assert_eq!(backup.range("", Range::default()).await.unwrap(), as_of);
    assert_eq!(backup.compacted(), store.compacted());
    // The history came along.
    assert_eq!(
        backup.watch("", backup.compacted()).await.unwrap().next().await,
        store.watch("", backup.compacted()).await.unwrap().next().await
    );
    let ahead = backup.watch("", store.revision().next()).await.map(|_| ());
    assert_eq!(ahead, Err(StoreError::Future { current: at }));
}
