use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, UnitName};

/// Which process a unit is. A number alone is not enough: it can belong to somebody else by the time it is read
/// again. With the time it started and the boot it started in, it cannot.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pid: i32,
    start: u64,
    boot: String,
}

/// How long processes of an earlier run may take to be gone after SIGKILL.
const MAX_WAIT: Duration = Duration::from_secs(5);

fn path(dir: &Path, name: &UnitName) -> PathBuf {
    dir.join(format!("{name}.json"))
}

impl Record {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let pid = i32::try_from(pid).map_err(|_| Error::invalid("pid", "out of range"))?;
        let start =
            start_time(pid).ok_or_else(|| Error::invalid(format!("process {pid}"), "is gone already"))?;
        Ok(Self { pid, start, boot: boot_id() })
    }

    /// Written before the workload runs, so that none is ever unknown.
    pub(super) fn write(&self, dir: &Path, name: &UnitName) -> Result<()> {
        let path = path(dir, name);
        let failed = |e: std::io::Error| Error::io(path.display().to_string(), e);
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self).map_err(|e| failed(e.into()))?).map_err(failed)?;
        std::fs::rename(&new, &path).map_err(failed)
    }

    pub(super) fn remove(dir: &Path, name: &UnitName) {
        let _ = std::fs::remove_file(path(dir, name));
    }

    fn is_running(&self) -> bool {
        self.boot == boot_id() && start_time(self.pid) == Some(self.start)
    }
}

/// Ends what an earlier run of this supervisor has left, and nothing else. Returns how many units that were.
pub(super) fn end_leftovers(dir: &Path) -> Result<usize> {
    let failed = |e| Error::io(dir.display().to_string(), e);
    let mut ended = 0;
    for item in std::fs::read_dir(dir).map_err(failed)? {
        let path = item.map_err(failed)?.path();
        let record = std::fs::read(&path).ok().and_then(|b| serde_json::from_slice::<Record>(&b).ok());
        if let Some(record) = record.filter(Record::is_running) {
            end(&record)?;
            ended += 1;
        }
        std::fs::remove_file(&path).map_err(|e| Error::io(path.display().to_string(), e))?;
    }
    Ok(ended)
}

fn end(record: &Record) -> Result<()> {
    let what = || format!("ending process {}, left by an earlier run", record.pid);
    let pid = Pid::from_raw(record.pid).ok_or_else(|| Error::invalid("pid", "out of range"))?;
    match kill_process_group(pid, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(e) => return Err(Error::io(what(), e)),
    }
    let begin = Instant::now();
    while record.is_running() && !is_zombie(record.pid) {
        if begin.elapsed() > MAX_WAIT {
            return Err(Error::io(what(), std::io::Error::from(std::io::ErrorKind::TimedOut)));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The fields of `/proc/PID/stat` after the name, which is in parentheses and can hold anything (proc(5)).
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Field 22: when it started, in ticks since the system did.
fn start_time(pid: i32) -> Option<u64> {
    stat(pid)?.get(19)?.parse().ok()
}

fn is_zombie(pid: i32) -> bool {
    stat(pid).is_some_and(|f| f.first().is_some_and(|s| s == "Z"))
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
