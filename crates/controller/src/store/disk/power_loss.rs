//! The power fails at any write: of what was not synced, any part may be on the disk, torn at sectors.
//!
//! `kill -9` alone cannot show this, since the system still writes what a killed process had handed to it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use redb::StorageBackend;

use super::Database;
use super::database::initialise;
use crate::store::batch::Stage;
use crate::store::snapshot::range;
use crate::store::state::State;
use crate::store::transaction::Transaction;
use crate::store::{Expect, Page, Range, Retention, Revision, Write};

const SECTOR: usize = 512;

#[derive(Debug, Clone)]
enum Unsynced {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Unsynced {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Unsynced::Length(length) => image.resize(*length, 0),
            Unsynced::Write(at, bytes) => {
                image.resize(image.len().max(at + bytes.len()), 0);
                image[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Platter {
    live: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<Unsynced>,
    /// How many operations the power lasts.
    power: usize,
    syncs: usize,
    growths: usize,
}

#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Platter>>);

impl Disk {
    fn with(image: Vec<u8>) -> Self {
        let platter = Platter { live: image.clone(), synced: image, power: usize::MAX, ..Platter::default() };
        Disk(Arc::new(Mutex::new(platter)))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap()
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, Platter>> {
        let mut platter = self.platter();
        platter.power = platter.power.checked_sub(1).ok_or_else(|| io::Error::other("no power"))?;
        Ok(platter)
    }

    fn change(&self, change: Unsynced) -> io::Result<()> {
        let mut platter = self.powered()?;
        change.apply(&mut platter.live);
        platter.unsynced.push(change);
        Ok(())
    }

    /// What is found when the power is back.
    fn found(&self, mut chance: impl FnMut() -> bool) -> Vec<u8> {
        let platter = self.platter();
        let mut image = platter.synced.clone();
        for change in &platter.unsynced {
            match change {
                Unsynced::Write(at, bytes) => {
                    for (n, sector) in bytes.chunks(SECTOR).enumerate() {
                        if chance() {
                            Unsynced::Write(at + n * SECTOR, sector.to_vec()).apply(&mut image);
                        }
                    }
                }
                length => length.apply(&mut image),
            }
        }
        image
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.platter();
        let bytes = platter.live.get(offset as usize..).and_then(|bytes| bytes.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = length as usize;
        let grows = length > self.platter().live.len();
        self.change(Unsynced::Length(length))?;
        self.platter().growths += usize::from(grows);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.powered()?;
        platter.syncs += 1;
        let Platter { unsynced, synced, .. } = &mut *platter;
        unsynced.drain(..).for_each(|change| change.apply(synced));
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Unsynced::Write(offset as usize, bytes.to_vec()))
    }
}

const RETENTION: Retention = Retention { max_events: 40, max_bytes: usize::MAX, max_age: None };

fn open(disk: &Disk) -> (Database, State) {
    let redb = redb::Database::builder()
        .set_check_integrity_on_open(true)
        .create_with_backend(disk.clone())
        .unwrap();
    Database::load(Path::new("disk"), redb, RETENTION).unwrap()
}

fn new_disk() -> Disk {
    let disk = Disk::with(Vec::new());
    let redb = redb::Database::builder().create_with_backend(disk.clone()).unwrap();
    initialise(&redb).unwrap();
    redb.close().unwrap();
    disk
}

fn now(state: &State) -> (Revision, Page) {
    (state.compacted(), range(state, "", &Range::default()).unwrap())
}

fn transaction(key: u64, size: usize) -> Transaction {
    let key: Arc<str> = format!("{key}").into();
    let write = if size.is_multiple_of(6) {
        Write::Delete { key, expect: Expect::Any }
    } else {
        Write::Put { key, value: vec![size as u8; size].into(), expect: Expect::Any }
    };
    Transaction::new(vec![write]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: rounds(60), ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_there(powers in proptest::collection::vec(1..400usize, 1..5), seed: u64) {
        let mut seed = seed | 1;
        let mut dice = move |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) % below
        };
        let mut disk = new_disk();
        let mut expected = now(&State::new(RETENTION));
        for power in powers {
            let (database, mut state) = open(&disk);
            prop_assert_eq!(now(&state), expected);
            disk.platter().power = power;
            // The state if the last commit is lost, and if it is on the disk after all.
            let (before, after) = loop {
                let mut stage = Stage::new(&state);
                for _ in 0..=dice(3) {
                    let size = if dice(10) == 0 { 9000 } else { 400 };
                    stage.write(transaction(dice(12), dice(size) as usize), UNIX_EPOCH).unwrap();
                }
                let batch = stage.finish(UNIX_EPOCH);
                if batch.is_empty() {
                    continue;
                }
                let before = now(&state);
                let committed = database.commit(&batch);
                state.apply(&batch);
                if committed.is_err() {
                    break (before, now(&state));
                }
            };
            drop(database);
            let found = Disk::with(disk.found(|| dice(2) == 0));
            disk = found.clone();
            let (database, state) = open(&disk);
            let now = now(&state);
            prop_assert!(now == before || now == after, "{:?} is neither {:?} nor {:?}", now, before, after);
            expected = now;
            drop(database);
        }
    }
}

#[test]
fn a_commit_takes_one_sync() {
    let disk = new_disk();
    let (database, mut state) = open(&disk);
    let counts = || {
        let platter = disk.platter();
        (platter.syncs, platter.growths)
    };
    let (syncs, growths) = counts();
    for n in 0..100 {
        let mut stage = Stage::new(&state);
        stage.write(transaction(n % 7, 1001), UNIX_EPOCH).unwrap();
        let batch = stage.finish(UNIX_EPOCH);
        database.commit(&batch).unwrap();
        state.apply(&batch);
    }
    assert!(state.compacted() > Revision::ZERO, "with compactions among them");
    let (syncs, growths) = (counts().0 - syncs, counts().1 - growths);
    assert!(growths < 5, "the file grows rarely");
    assert_eq!(syncs, 100 + growths, "one more where the file grows");
}

/// How many cases a random test runs: few normally, as many as `HORCHESTRA_SOAK` says.
fn rounds(normal: u32) -> u32 {
    std::env::var("HORCHESTRA_SOAK").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(normal)
}
