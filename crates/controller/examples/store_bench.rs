//! How fast the store commits, beside what the disk can do: `cargo run --release --example store_bench [DIRECTORY]`.
//!
//! Both are measured in turns in the same run, since disks differ by ten times and from minute to minute. The raw loop
//! writes as many bytes as a value has over a file that does not grow, and syncs, one after the other: the least that a
//! durable write costs.

use std::error::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use horchestra_controller::store::{Expect, MemoryStore, RedbStore, Retention, RevisionedStore, Write};

/// About a small Kubernetes object.
const VALUE_BYTES: usize = 1500;
const KEYS: usize = 1000;
const RAW_BYTES: usize = 4 * 1024 * 1024;
/// How long one measurement takes, and how often it is repeated.
const TURN: Duration = Duration::from_millis(700);
const TURNS: usize = 3;

type Anything = Box<dyn Error + Send + Sync>;

/// The durations of single operations, and what they took together.
#[derive(Default)]
struct Measured {
    each: Vec<Duration>,
    elapsed: Duration,
}

impl Measured {
    fn per_second(&self) -> f64 {
        self.each.len() as f64 / self.elapsed.as_secs_f64()
    }

    fn quantile(&self, quantile: f64) -> Duration {
        let mut each = self.each.clone();
        each.sort();
        let at = (each.len() as f64 * quantile) as usize;
        each.get(at.min(each.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    fn add(&mut self, other: Measured) {
        self.each.extend(other.each);
        self.elapsed += other.elapsed;
    }
}

fn raw(file: &Path) -> Result<Measured, Anything> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(file)?;
    file.write_all_at(&vec![0; RAW_BYTES], 0)?;
    file.sync_all()?;
    let mut measured = Measured::default();
    let began = Instant::now();
    for offset in (0..RAW_BYTES - VALUE_BYTES).step_by(4096).cycle() {
        if began.elapsed() >= TURN {
            break;
        }
        let start = Instant::now();
        file.write_all_at(&[7; VALUE_BYTES], offset as u64)?;
        file.sync_data()?;
        measured.each.push(start.elapsed());
    }
    measured.elapsed = began.elapsed();
    Ok(measured)
}

async fn commits(store: &Arc<dyn RevisionedStore>, writers: usize) -> Result<Measured, Anything> {
    let began = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut each = Vec::new();
                for n in 0.. {
                    if began.elapsed() >= TURN {
                        break;
                    }
                    let start = Instant::now();
                    let key = format!("pods/default/{}", (writer * 97 + n) % KEYS).into();
                    let value = vec![n as u8; VALUE_BYTES].into();
                    store.write(vec![Write::Put { key, value, expect: Expect::Any }]).await?;
                    each.push(start.elapsed());
                }
                Ok::<_, Anything>(each)
            })
        })
        .collect();
    let mut measured = Measured::default();
    for task in tasks {
        measured.each.extend(task.await??);
    }
    measured.elapsed = began.elapsed();
    Ok(measured)
}

async fn compare(name: &str, store: Arc<dyn RevisionedStore>, directory: &Path) -> Result<(), Anything> {
    for writers in [1, 8, 32] {
        let (mut disk, mut ours) = (Measured::default(), Measured::default());
        for _ in 0..TURNS {
            disk.add(raw(&directory.join("raw"))?);
            ours.add(commits(&store, writers).await?);
        }
        println!(
            "{name:<7}{writers:>8}{:>12.0}{:>12.0}{:>9.2}{:>12.2?}{:>12.2?}{:>12.2?}{:>9.2}",
            ours.per_second(),
            disk.per_second(),
            ours.per_second() / disk.per_second(),
            ours.quantile(0.5),
            ours.quantile(0.99),
            disk.quantile(0.5),
            ours.quantile(0.5).as_secs_f64() / disk.quantile(0.5).as_secs_f64(),
        );
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = parent.join(format!("store-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    println!("{VALUE_BYTES} bytes a value, {KEYS} keys, in {}", directory.display());
    println!(
        "{:<7}{:>8}{:>12}{:>12}{:>9}{:>12}{:>12}{:>12}{:>9}",
        "store", "writers", "commits/s", "raw/s", "ratio", "p50", "p99", "raw p50", "ratio"
    );
    let redb = RedbStore::open(directory.join("store.redb"), Retention::default())?;
    let measured = match compare("redb", Arc::new(redb), &directory).await {
        Ok(()) => compare("memory", Arc::new(MemoryStore::default()), &directory).await,
        failed => failed,
    };
    std::fs::remove_dir_all(&directory)?;
    measured
}
