use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child as StdChild, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use horchestra_oci::StopSignal;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::sync::oneshot;

use super::record::Record;
use crate::launch::{ASK, LaunchSpec};
use crate::log::{LogWriter, Pump, Stream};
use crate::supervisor::Exit;
use crate::{Error, Result, UnitName};

/// A running process of a unit, with its group.
#[derive(Debug)]
pub(super) struct Child {
    pub pid: u32,
    group: Arc<Group>,
    exit: oneshot::Receiver<Exit>,
}

/// A process group that is ours as long as its leader has not been reaped.
#[derive(Debug)]
struct Group {
    pid: Pid,
    alive: Mutex<bool>,
}

/// Where things of one unit are.
#[derive(Debug)]
pub(super) struct Places {
    pub launcher: PathBuf,
    pub records: PathBuf,
    pub errors: PathBuf,
}

const STACK: usize = 128 << 10;
/// How long killed processes of a group may take to be gone, also where nobody collects them.
const MAX_GROUP_EXIT: Duration = Duration::from_millis(500);
/// How long the last lines of a process that has ended may take to arrive.
const MAX_DRAIN: Duration = Duration::from_secs(1);

impl Group {
    fn signal(&self, signal: StopSignal) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if !*alive {
            return;
        }
        let sent = match Signal::from_named_raw(i32::from(signal.number())) {
            Some(signal) => kill_process_group(self.pid, signal).map_err(std::io::Error::from),
            // Real-time signals belong to the C library, which is not used here.
            None => Command::new("kill")
                .args(["-s", &signal.number().to_string(), "--", &format!("-{}", self.pid.as_raw_nonzero())])
                .status()
                .map(|_| ()),
        };
        if let Err(e) = sent {
            tracing::debug!("signal {} to group {:?}: {e}", signal.number(), self.pid);
        }
    }

    fn kill(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

impl Child {
    /// Starts the launcher and tells it what to become. Blocking.
    pub(super) fn start(
        name: &UnitName,
        spec: &LaunchSpec,
        places: &Places,
        log: &LogWriter,
    ) -> Result<Self> {
        let failed =
            |what: &str, e: std::io::Error| Error::io(format!("{what} {}", places.launcher.display()), e);
        let text = serde_json::to_vec(spec).map_err(|e| failed("telling", e.into()))?;
        let mut child = Command::new(&places.launcher)
            .arg(ASK)
            .arg(&places.errors)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| failed("starting", e))?;
        let (out, err, input) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
        let begun = Record::of(child.id()).and_then(|record| record.write(&places.records, name));
        let told = begun.and_then(|()| match input {
            Some(mut input) => input.write_all(&text).map_err(|e| failed("telling", e)),
            None => Ok(()),
        });
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (Ok(()), Some(pid)) = (&told, pid) else {
            let _ = child.kill();
            let _ = child.wait();
            Record::remove(&places.records, name);
            return Err(told.err().unwrap_or_else(|| Error::invalid("pid", "out of range")));
        };
        let group = Arc::new(Group { pid, alive: Mutex::new(true) });
        let (drained, pumps) = mpsc::channel::<()>();
        for (reader, stream) in [
            (out.map(|r| Box::new(r) as Box<dyn std::io::Read + Send>), Stream::Out),
            (err.map(|r| Box::new(r) as Box<dyn std::io::Read + Send>), Stream::Err),
        ] {
            let Some(reader) = reader else { continue };
            let (pump, drained) = (Pump::new(reader, stream, log.clone()), drained.clone());
            thread("log", move || {
                pump.run();
                drop(drained);
            })?;
        }
        drop(drained);
        let (sender, exit) = oneshot::channel();
        let number = child.id();
        let (waiting, errors) = (group.clone(), places.errors.clone());
        let (records, name) = (places.records.clone(), name.clone());
        thread("wait", move || {
            let status = reap(child, &waiting);
            Record::remove(&records, &name);
            // Ends when both pumps are done, or when a process that left the group keeps a pipe open.
            let _ = pumps.recv_timeout(MAX_DRAIN);
            let _ = sender.send(to_exit(status, &errors));
        })?;
        Ok(Self { pid: number, group, exit })
    }

    /// Waits for the end. All of the group is ended with its leader.
    pub(super) async fn exited(&mut self) -> Exit {
        match (&mut self.exit).await {
            Ok(exit) => exit,
            Err(_) => Exit::NotStarted("the thread that waited for it is gone".to_owned()),
        }
    }

    /// Asks it to stop, waits, and kills it then.
    pub(super) async fn terminate(&mut self, signal: StopSignal, grace: Duration) -> Exit {
        self.group.signal(signal);
        match tokio::time::timeout(grace, self.exited()).await {
            Ok(exit) => exit,
            Err(_) => {
                {
                    let alive = self.group.alive.lock().unwrap_or_else(PoisonError::into_inner);
                    if *alive {
                        self.group.kill();
                    }
                }
                self.exited().await
            }
        }
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let builder = std::thread::Builder::new().name(format!("unit {name}")).stack_size(STACK);
    builder.spawn(work).map(|_| ()).map_err(|e| Error::io("starting a thread", e))
}

/// Waits without reaping, ends the rest of the group while its number cannot be anyone else's, then reaps.
fn reap(mut child: StdChild, group: &Group) -> std::io::Result<ExitStatus> {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(group.pid), ended) {}
    let mut alive = group.alive.lock().unwrap_or_else(PoisonError::into_inner);
    group.kill();
    *alive = false;
    let status = child.wait();
    drop(alive);
    // The others were killed as well, but the kernel takes its time. From here on the number may be anyone's,
    // so that it is only asked after.
    let begin = Instant::now();
    while test_kill_process_group(group.pid).is_ok() && begin.elapsed() < MAX_GROUP_EXIT {
        std::thread::sleep(Duration::from_millis(2));
    }
    status
}

fn to_exit(status: std::io::Result<ExitStatus>, errors: &Path) -> Exit {
    // The launcher writes why it could not become the workload; a workload never sees this file.
    let why = std::fs::read_to_string(errors).unwrap_or_default();
    let _ = std::fs::remove_file(errors);
    if !why.is_empty() {
        return Exit::NotStarted(why);
    }
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::NotStarted(format!("unknown exit status {status}")),
        },
        Err(e) => Exit::NotStarted(format!("waiting for it failed: {e}")),
    }
}
