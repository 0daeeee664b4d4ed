//! The node itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use horchestra_api::{Application, Node};
use horchestra_core::plan::PlanOptions;
use horchestra_core::{Kind, Manifest, Object};
use horchestra_runtime::{
    ApplyOptions, ReconcilerOptions, Runtime, RuntimeOptions, Scope, Target, TargetFor,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::application::{ApplicationReconciler, GROUP};
use super::images::Images;
use super::salt::Salt;
use super::units::Units;
use crate::{
    Error, ProcessOptions, ProcessSupervisor, Result, Supervisor, SystemdOptions, SystemdSupervisor, UnitName,
};

/// How often a node says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The finalizer of Applications: what runs is stopped before its object goes.
const FINALIZER: &str = "orch.ks-tool.dev/unit";
const MANAGER: &str = "horchestra-node";

/// How a local node is started.
pub struct LocalNodeOptions {
    /// Its name; the machine's host name if empty.
    pub name: String,
    /// Where it keeps images, logs and state.
    pub data: PathBuf,
    /// A layout, or a directory of layouts, with the images that it may run by their names.
    pub images: Option<PathBuf>,
    /// Where Applications are.
    pub target: Arc<dyn Target>,
    /// Who runs the workloads.
    pub supervisor: SupervisorChoice,
}

/// Who runs the workloads of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SupervisorChoice {
    /// systemd where it runs this machine and this program is root, else this program.
    #[default]
    Auto,
    /// systemd: workloads are its services, and go on when this program ends.
    Systemd,
    /// This program: workloads are its child processes, and end with it.
    Processes,
}

impl std::fmt::Debug for LocalNodeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalNodeOptions")
            .field("name", &self.name)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

/// A node in this process.
///
/// The program must call [`launch::run_if_asked`](crate::launch::run_if_asked) first of all in its `main`.
#[derive(Debug)]
pub struct LocalNode {
    runtime: Runtime,
    supervisor: Arc<dyn Supervisor>,
    tasks: Vec<JoinHandle<()>>,
}

impl LocalNode {
    /// Starts it.
    ///
    /// # Errors
    /// Where its directories cannot be used.
    pub async fn start(options: LocalNodeOptions) -> Result<Self> {
        let name = if options.name.is_empty() { host_name() } else { options.name };
        if let Some(path) = options.images.as_deref().filter(|path| !path.is_dir()) {
            return Err(Error::Invalid {
                field: "images".into(),
                problem: format!(
                    "{} is not a directory; name an image layout, or a directory of them",
                    path.display()
                ),
            });
        }
        let supervisor = supervisor(options.supervisor, &options.data).await?;
        let salt = Salt::open(&options.data.join("salt"))?;
        let images = Images { store: options.data.join("images"), layouts: options.images };
        let units = Units::new(supervisor.clone(), images, options.data.join("files"), salt);
        forget_strays(&*options.target, &*supervisor, &name).await?;

        let runtime = Runtime::new(RuntimeOptions::default());
        runtime.add_target(TargetFor::Everything, options.target.clone());
        runtime.add_target(TargetFor::Group(GROUP.into()), Arc::new(units.clone()));
        let follow = tokio::spawn(units.follow());
        let reconciler = ReconcilerOptions {
            name: "applications".into(),
            managed_by: MANAGER.into(),
            finalizer: Some(FINALIZER.into()),
            plan: PlanOptions { manager: MANAGER.into(), ..PlanOptions::default() },
            ready_condition: false,
            ..ReconcilerOptions::default()
        };
        runtime.register(Arc::new(ApplicationReconciler { node: name.clone() }), reconciler).await;
        let beat = tokio::spawn(heartbeat(options.target, name, supervisor.clone()));
        Ok(Self { runtime, supervisor, tasks: vec![follow, beat] })
    }

    /// What its reconcilers did: OpenMetrics text, whenever it is called.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + use<> {
        let runtime = self.runtime.clone();
        move || runtime.metrics()
    }

    /// Ends the node. Workloads that are child processes are stopped, each with its grace; those of
    /// systemd go on.
    pub async fn shutdown(self) {
        self.runtime.shutdown().await;
        for task in &self.tasks {
            task.abort();
        }
        self.supervisor.shutdown().await;
    }
}

impl Drop for LocalNode {
    fn drop(&mut self) {
        self.runtime.close();
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn supervisor(choice: SupervisorChoice, data: &Path) -> Result<Arc<dyn Supervisor>> {
    let systemd = match choice {
        SupervisorChoice::Auto => SystemdSupervisor::is_possible(),
        SupervisorChoice::Systemd if SystemdSupervisor::is_possible() => true,
        SupervisorChoice::Systemd => {
            return Err(Error::unsupported(
                "running workloads by systemd",
                "it needs root's rights on a machine that systemd runs; use processes",
            ));
        }
        SupervisorChoice::Processes => false,
    };
    Ok(if systemd {
        Arc::new(SystemdSupervisor::new(SystemdOptions::new(data.join("roots"))).await?)
    } else {
        Arc::new(ProcessSupervisor::new(ProcessOptions::new(data.join("units")))?)
    })
}

/// Ends units whose Applications were deleted while this program did not run. What runs is listed
/// before what should: whatever is asked for meanwhile has not begun yet.
async fn forget_strays(target: &dyn Target, supervisor: &dyn Supervisor, node: &str) -> Result<()> {
    let running = supervisor.list().await;
    let kind = Kind::of::<Application>();
    let listing = target
        .list(&kind, &Scope::All)
        .await
        .map_err(|source| Error::Api { what: "list the Applications".into(), source })?;
    let mine = |object: &&Object| {
        let value = object.to_value();
        let wanted = value.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        (wanted.is_empty() || wanted == node) && !object.is_deleting()
    };
    let wanted: HashSet<UnitName> = listing
        .objects
        .iter()
        .filter(mine)
        .filter_map(|object| UnitName::of(object.namespace(), object.name()).ok())
        .collect();
    for unit in running.into_iter().filter(|unit| !wanted.contains(&unit.name)) {
        tracing::info!(unit = %unit.name, "ended: its Application is gone");
        supervisor.remove(&unit.name).await?;
    }
    supervisor.prune(&wanted).await
}

/// Keeps the Node object of this machine up to date.
async fn heartbeat(target: Arc<dyn Target>, name: String, supervisor: Arc<dyn Supervisor>) {
    loop {
        if let Err(error) = beat(&*target, &name, &*supervisor).await {
            tracing::warn!(%error, "the node's object cannot be written");
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}

async fn beat(target: &dyn Target, name: &str, supervisor: &dyn Supervisor) -> Result<()> {
    let kind = Kind::of::<Node>();
    let api = |what: &str| {
        let what = what.to_owned();
        move |source| Error::Api { what, source }
    };
    let manifest =
        json!({"apiVersion": kind.gvk.api_version(), "kind": "Node", "metadata": {"name": name}, "spec": {}});
    let manifest = Manifest::new(manifest).map_err(|e| Error::invalid("node name", e.to_string()))?;
    let stored = target
        .apply(&kind, &manifest, &ApplyOptions::force(MANAGER))
        .await
        .map_err(api("create the node"))?;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let capabilities = supervisor.capabilities();
    let before = stored.to_value();
    let since = before
        .pointer("/status/conditions/0/lastTransitionTime")
        .cloned()
        .unwrap_or_else(|| now.clone().into());
    let status = json!({
        "ready": true,
        "heartbeat": now,
        "os": os(),
        "supervisor": capabilities.name,
        "limitations": capabilities.notes,
        "capacity": capacity(),
        "conditions": [{"type": "Ready", "status": "True", "reason": "NodeReady", "message": "the node is in this process", "lastTransitionTime": since}],
    });
    let Value::Object(status) = status else { return Ok(()) };
    target.set_status(&stored, &kind, status, MANAGER).await.map(drop).map_err(api("write the node's status"))
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let fine: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).take(63).collect();
    let fine = fine.trim_matches('-').to_owned();
    if fine.is_empty() { "local".into() } else { fine }
}

fn os() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty = release
        .lines()
        .find_map(|l| l.strip_prefix("PRETTY_NAME="))
        .unwrap_or("Linux")
        .trim_matches('"')
        .to_owned();
    let uname = rustix::system::uname();
    format!("{pretty}, Linux {}, {}", uname.release().to_string_lossy(), uname.machine().to_string_lossy())
}

fn capacity() -> Value {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    let mut capacity = json!({"cpu": processors.to_string()});
    if let Some(kib) = total {
        capacity["memory"] = format!("{kib}Ki").into();
    }
    capacity
}
