//! The supervisor: systemd, told what to run.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::manager::Systemd;
use super::program::OpenRoot;
use super::properties::{GROWING_RESTARTS, Site, properties, restart_wait};
use super::root::UnitRoot;
use super::{environment, journal, state, users};
use crate::log::{LogOptions, LogStream};
use crate::supervisor::{Capabilities, Isolation, Supervisor, UnitPhase, UnitState};
use crate::{Error, Result, Unit, UnitName};

/// How a [`SystemdSupervisor`] works.
#[derive(Clone, Debug)]
pub struct SystemdOptions {
    /// Where what units write into their roots is kept. Belongs to one supervisor alone.
    pub state_dir: PathBuf,
}

impl SystemdOptions {
    /// With state in this directory.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: state_dir.into() }
    }
}

/// Runs units as transient systemd services of the system. Needs root and a systemd that is PID 1.
///
/// When this program ends, the units go on; the next one finds them again.
#[derive(Debug)]
pub struct SystemdSupervisor {
    systemd: Systemd,
    version: u32,
    state_dir: PathBuf,
    capabilities: Capabilities,
    changes: broadcast::Sender<UnitState>,
    follow: AbortHandle,
}

/// Changes that a slow watcher may be behind before it has to list again.
const CHANGES: usize = 1024;
/// What the names of our units begin with.
const PREFIX: &str = "horchestra-";

fn service(name: &UnitName) -> String {
    format!("{PREFIX}{name}.service")
}

impl SystemdSupervisor {
    /// Whether systemd runs this machine and would listen to this program.
    #[must_use]
    pub fn is_possible() -> bool {
        // Source: sd_booted(3).
        Path::new("/run/systemd/system").is_dir() && rustix::process::geteuid().is_root()
    }

    /// Connects to systemd.
    ///
    /// # Errors
    /// Where systemd does not answer, or the directory cannot be used.
    pub async fn new(options: SystemdOptions) -> Result<Self> {
        let failed = |e| Error::io(options.state_dir.display().to_string(), e);
        std::fs::create_dir_all(&options.state_dir).map_err(failed)?;
        // What units write is nobody else's business; they themselves begin below it.
        std::fs::set_permissions(&options.state_dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .map_err(failed)?;
        let state_dir = std::path::absolute(&options.state_dir).map_err(failed)?;
        let systemd = Systemd::connect().await?;
        let version = systemd.version().await?;
        let changes = broadcast::Sender::new(CHANGES);
        let follow = follow(systemd.clone(), changes.clone()).await?.abort_handle();
        let capabilities = capabilities(version);
        Ok(Self { systemd, version, state_dir, capabilities, changes, follow })
    }

    fn root(&self, name: &UnitName) -> Arc<UnitRoot> {
        Arc::new(UnitRoot::new(self.state_dir.join(name.as_str())))
    }

    /// The state of one unit.
    async fn state(&self, name: &UnitName) -> Result<Option<UnitState>> {
        let found = self.systemd.list(&service(name)).await?;
        for (_, path) in found {
            if let Some(state) = self.systemd.properties(&path).await?.as_ref().and_then(state::state) {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        what: String,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|e| Error::io(what, std::io::Error::other(e)))?
    }
}

impl Drop for SystemdSupervisor {
    fn drop(&mut self) {
        self.follow.abort();
    }
}

/// Tells of every change of our units.
async fn follow(systemd: Systemd, changes: broadcast::Sender<UnitState>) -> Result<JoinHandle<()>> {
    let mut stream = Box::pin(systemd.changes().await?);
    Ok(tokio::spawn(async move {
        let mut last: Option<UnitState> = None;
        while let Some(path) = stream.next().await {
            // systemd writes '-' of a unit's name as an escape in the path.
            if !path.as_str().contains("/horchestra_2d") {
                continue;
            }
            match systemd.properties(&path).await {
                Ok(Some(properties)) => {
                    let now = state::state(&properties);
                    // Each change is told for several interfaces.
                    if now.is_some() && now != last {
                        last.clone_from(&now);
                        now.into_iter().for_each(|state| drop(changes.send(state)));
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "a unit's state cannot be read"),
            }
        }
        tracing::warn!("the connection to systemd has ended; changes of units are not seen any more");
    }))
}

fn capabilities(version: u32) -> Capabilities {
    let mut notes = vec![format!("units are services of systemd {version}")];
    // Source: cgroups(7): this file is in the root of the unified hierarchy only.
    let unified = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let limits = ["cpu", "memory"].iter().all(|c| unified.split_whitespace().any(|word| word == *c));
    if !limits {
        notes.push("CPU and memory limits are not enforced: the machine does not use cgroup v2".to_owned());
    }
    if version < GROWING_RESTARTS {
        notes.push(format!(
            "restarts wait {:?} each time; systemd {GROWING_RESTARTS} and later let the wait grow",
            restart_wait(version)
        ));
    }
    notes.push("a deadline counts for each run of a unit".to_owned());
    Capabilities { name: "systemd", isolation: Isolation::Mounts, shared_roots: true, limits, notes }
}

#[async_trait]
impl Supervisor for SystemdSupervisor {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn start(&self, unit: Unit) -> Result<()> {
        let name = unit.name.clone();
        let before = self.state(&name).await?;
        if before.as_ref().is_some_and(|state| state.revision == unit.revision) {
            return Ok(());
        }
        // Checked before anything has changed, with any program in the place of the one not yet found.
        let environment = environment::path(&name);
        let probe = Site { version: self.version, root: None, environment: &environment, program: "/" };
        properties(&unit, &probe)?;
        if before.is_some() {
            self.stop(&name).await?;
        }
        let (version, root, what) = (self.version, self.root(&name), format!("preparing {name}"));
        let prepared = self
            .blocking(what, move || {
                users::announce(&unit.user)?;
                let path = root.prepare(&unit)?;
                let open = OpenRoot::new(path.as_deref().unwrap_or(Path::new("/")))?;
                open.make(unit.working_dir.as_str())?;
                let program = open.program(&unit)?;
                let environment = &environment::write(&unit.name, &unit.env)?;
                properties(&unit, &Site { version, root: path.as_deref(), environment, program: &program })
            })
            .await?;
        // A unit that fails to start is in a state that says so, like any other.
        let result = self.systemd.start(&service(&name), &prepared).await?;
        if result != "done" {
            tracing::info!(unit = %name, result, "the unit did not start");
        }
        Ok(())
    }

    async fn stop(&self, name: &UnitName) -> Result<()> {
        self.systemd.stop(&service(name)).await
    }

    async fn remove(&self, name: &UnitName) -> Result<()> {
        self.stop(name).await?;
        let (root, unit) = (self.root(name), name.clone());
        let work = move || environment::remove(&unit).and_then(|()| root.release());
        self.blocking(format!("removing {name}"), work).await
    }

    async fn list(&self) -> Vec<UnitState> {
        let found = match self.systemd.list(&format!("{PREFIX}*.service")).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the units cannot be listed");
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for (_, path) in found {
            if let Ok(Some(properties)) = self.systemd.properties(&path).await {
                all.extend(state::state(&properties));
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn watch(&self) -> broadcast::Receiver<UnitState> {
        self.changes.subscribe()
    }

    async fn logs(&self, name: &UnitName, options: LogOptions) -> Result<LogStream> {
        let ended = CancellationToken::new();
        let mut changes = self.watch();
        let running = self.state(name).await?.is_some_and(|state| !state.phase.is_final());
        if !running {
            // Nothing more will come.
            return journal::open(name, LogOptions { follow: false, ..options }, ended);
        }
        let stream = journal::open(name, options, ended.clone())?;
        let name = name.clone();
        tokio::spawn(async move {
            let _guard = ended.drop_guard();
            loop {
                match changes.recv().await {
                    Ok(state) if state.name == name && state.phase.is_final() => break,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => break,
                }
            }
            // The journal is written by another process, which may be a moment behind.
            tokio::time::sleep(JOURNAL_LAG).await;
        });
        Ok(stream)
    }

    async fn prune(&self, keep: &HashSet<UnitName>) -> Result<()> {
        let failed = |e| Error::io(self.state_dir.display().to_string(), e);
        let running: HashSet<UnitName> = self
            .list()
            .await
            .into_iter()
            .filter(|state| !matches!(state.phase, UnitPhase::Stopped))
            .map(|state| state.name)
            .collect();
        for item in std::fs::read_dir(&self.state_dir).map_err(failed)? {
            let name = item.map_err(failed)?.file_name();
            // What is no unit's name was not made here.
            let Ok(name) = UnitName::new(&name.to_string_lossy()) else { continue };
            if !keep.contains(&name) && !running.contains(&name) {
                self.remove(&name).await?;
            }
        }
        Ok(())
    }

    /// Nothing to do: the units are systemd's, and go on.
    async fn shutdown(&self) {}
}

/// How long the journal may be behind the end of a unit.
const JOURNAL_LAG: std::time::Duration = std::time::Duration::from_millis(300);
