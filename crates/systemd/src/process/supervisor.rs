use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;
use tokio::sync::{broadcast, watch};

use super::worker::{KILL_MARGIN, Worker};
use super::{BackOff, detect, launcher, record};
use crate::launch;
use crate::log::{self, LogOptions, LogStream, LogWriter};
use crate::supervisor::{Capabilities, Supervisor, UnitPhase, UnitState};
use crate::unit::LogLimits;
use crate::{Error, Result, Unit, UnitName};

/// How a [`ProcessSupervisor`] works.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// Where state, logs and writable layers are kept. Belongs to one supervisor alone.
    pub state_dir: PathBuf,
    /// The program that becomes a workload; this one where it called
    /// [`run_if_asked`](crate::launch::run_if_asked).
    pub launcher: Option<PathBuf>,
    /// How long a unit waits before it is started again.
    pub back_off: BackOff,
    /// How much of what units write is kept.
    pub logs: LogLimits,
}

impl ProcessOptions {
    /// The defaults, with state in this directory.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            launcher: launch::this_program(),
            back_off: BackOff::default(),
            logs: LogLimits::default(),
        }
    }
}

/// Runs units as child processes of this one.
#[derive(Debug)]
pub struct ProcessSupervisor {
    options: ProcessOptions,
    capabilities: Capabilities,
    units: Mutex<HashMap<UnitName, Handle>>,
    changes: broadcast::Sender<UnitState>,
    _lock: std::fs::File,
}

#[derive(Debug)]
struct Handle {
    unit: Arc<Unit>,
    state: watch::Receiver<UnitState>,
    stop: watch::Sender<bool>,
    log: LogWriter,
}

/// Changes that a slow watcher may be behind before it has to list again.
const CHANGES: usize = 1024;

impl ProcessSupervisor {
    /// Prepares the state directory, ends what an earlier run has left, and finds out what is possible.
    /// Blocking, for some milliseconds.
    ///
    /// # Errors
    /// Where the directory cannot be used or belongs to another supervisor that is running.
    pub fn new(options: ProcessOptions) -> Result<Self> {
        let state = std::path::absolute(&options.state_dir)
            .map_err(|e| Error::io(options.state_dir.display().to_string(), e))?;
        let options = ProcessOptions { state_dir: state, ..options };
        for dir in ["run", "units", "logs"] {
            let dir = options.state_dir.join(dir);
            std::fs::create_dir_all(&dir).map_err(|e| Error::io(dir.display().to_string(), e))?;
        }
        let failed = |e| Error::io(options.state_dir.display().to_string(), e);
        // What units write may be secret, and is nobody else's business.
        std::fs::set_permissions(&options.state_dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .map_err(failed)?;
        let lock = std::fs::File::create(options.state_dir.join("lock")).map_err(failed)?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Error::unsupported(
                format!("using {}", options.state_dir.display()),
                "another supervisor is using it; end that one or choose another directory",
            )
        })?;
        let ended = record::end_leftovers(&options.state_dir.join("run"))?;
        if ended > 0 {
            tracing::info!("ended {ended} units that an earlier run had left");
        }
        let capabilities = detect::detect(options.launcher.as_deref(), &options.state_dir)?;
        Ok(Self {
            options,
            capabilities,
            units: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES),
            _lock: lock,
        })
    }

    fn units(&self) -> MutexGuard<'_, HashMap<UnitName, Handle>> {
        // The map is whole after every step.
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_dir(&self, name: &UnitName) -> PathBuf {
        self.options.state_dir.join("logs").join(name.as_str())
    }

    fn unit_dir(&self, name: &UnitName) -> PathBuf {
        self.options.state_dir.join("units").join(name.as_str())
    }
}

#[async_trait]
impl Supervisor for ProcessSupervisor {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn start(&self, unit: Unit) -> Result<()> {
        let name = unit.name.clone();
        let revision = self.units().get(&name).map(|h| h.unit.revision.clone());
        if revision.as_ref() == Some(&unit.revision) {
            return Ok(());
        }
        let launcher = self.options.launcher.clone().ok_or_else(|| {
            let why = match &self.capabilities.isolation {
                crate::Isolation::None(why) => why.clone(),
                _ => "there is no launcher".to_owned(),
            };
            Error::unsupported("starting a process", why)
        })?;
        let dir = self.unit_dir(&name);
        let dirs = launcher::RunDirs::below(&dir);
        launcher::spec(&unit, &self.capabilities.isolation, self.capabilities.shared_roots, &dirs)?;
        if revision.is_some() {
            self.stop(&name).await?;
        }
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(dir.display().to_string(), e))?;
        let unit = Arc::new(unit);
        let first = UnitState {
            name: name.clone(),
            revision: unit.revision.clone(),
            phase: UnitPhase::Starting,
            restarts: 0,
            started: None,
            finished: None,
            last_exit: None,
        };
        let (state, state_seen) = watch::channel(first);
        let (stop, stop_seen) = watch::channel(false);
        let log = LogWriter::new(self.log_dir(&name), self.options.logs);
        let worker = Worker {
            unit: unit.clone(),
            capabilities: self.capabilities.clone(),
            launcher,
            records: self.options.state_dir.join("run"),
            dir,
            log: log.clone(),
            back_off: self.options.back_off,
            state,
            changes: self.changes.clone(),
            stop: stop_seen,
        };
        self.units().insert(name, Handle { unit, state: state_seen, stop, log });
        tokio::spawn(worker.run());
        Ok(())
    }

    async fn stop(&self, name: &UnitName) -> Result<()> {
        let Some((mut state, grace)) = self.units().get(name).map(|h| {
            h.stop.send_replace(true);
            (h.state.clone(), h.unit.grace)
        }) else {
            return Ok(());
        };
        let gone = state.wait_for(|s| s.phase.is_final());
        let ended = tokio::time::timeout(grace + KILL_MARGIN, gone).await.is_ok();
        if !ended {
            return Err(Error::unsupported(
                format!("stopping {name}"),
                "its processes do not end even when killed; look for a hanging file system",
            ));
        }
        self.units().remove(name);
        Ok(())
    }

    async fn remove(&self, name: &UnitName) -> Result<()> {
        self.stop(name).await?;
        let (logs, unit) = (self.log_dir(name), self.unit_dir(name));
        let work = move || -> Result<()> {
            horchestra_oci::remove_tree(&logs)?;
            horchestra_oci::remove_tree(&unit)?;
            Ok(())
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(e) => Err(Error::io(format!("removing {name}"), std::io::Error::other(e))),
        }
    }

    async fn list(&self) -> Vec<UnitState> {
        let mut all: Vec<_> = self.units().values().map(|h| h.state.borrow().clone()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn watch(&self) -> broadcast::Receiver<UnitState> {
        self.changes.subscribe()
    }

    async fn logs(&self, name: &UnitName, options: LogOptions) -> Result<LogStream> {
        let live = self.units().get(name).map(|h| (h.log.subscribe(), h.state.clone()));
        let dir = self.log_dir(name);
        let Some((grown, mut state)) = live else {
            return log::open(dir, options, None).map_err(|_| Error::NoUnit(name.to_string()));
        };
        // A follower is told of the end by the closing of what tells it of growth.
        let (relay, seen) = watch::channel(0);
        let mut grown = grown;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    ended = state.wait_for(|s| s.phase.is_final()) => { drop(ended); break }
                    more = grown.changed() => if more.is_err() { break },
                    () = relay.closed() => break,
                }
                relay.send_modify(|n| *n += 1);
            }
        });
        log::open(dir, options, Some(seen))
    }

    async fn prune(&self, keep: &HashSet<UnitName>) -> Result<()> {
        let mut found = HashSet::new();
        for dir in ["logs", "units"] {
            let dir = self.options.state_dir.join(dir);
            let failed = |e| Error::io(dir.display().to_string(), e);
            for item in std::fs::read_dir(&dir).map_err(failed)? {
                // What is no unit's name was not made here.
                if let Ok(name) = UnitName::new(&item.map_err(failed)?.file_name().to_string_lossy()) {
                    found.insert(name);
                }
            }
        }
        found.retain(|name| !keep.contains(name) && !self.units().contains_key(name));
        for name in found {
            self.remove(&name).await?;
        }
        Ok(())
    }

    async fn shutdown(&self) {
        let names: Vec<_> = self.units().keys().cloned().collect();
        for (name, result) in names.iter().zip(join_all(names.iter().map(|n| self.stop(n))).await) {
            if let Err(e) = result {
                tracing::warn!("{name}: {e}");
            }
        }
    }
}
