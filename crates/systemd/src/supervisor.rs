use std::collections::HashSet;
use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::log::{LogOptions, LogStream};
use crate::{Result, Unit, UnitName};

/// Who runs units. What should run is a [`Unit`]; this trait is the other half.
///
/// A supervisor keeps a unit as its [`Restart`](crate::Restart) says until it is told otherwise. It decides
/// nothing else: what follows from an exit is its caller's business.
#[async_trait]
pub trait Supervisor: fmt::Debug + Send + Sync {
    /// What it can do here.
    fn capabilities(&self) -> &Capabilities;

    /// Makes a unit run. Nothing happens where the same revision is there already, also where it has ended; another revision
    /// is stopped and replaced.
    ///
    /// # Errors
    /// What the unit asks for and the supervisor cannot give, before anything has changed.
    async fn start(&self, unit: Unit) -> Result<()>;

    /// Stops a unit: its signal, its grace, then SIGKILL to all its processes. Returns when it is gone. A unit
    /// that is not there is success.
    ///
    /// # Errors
    /// Where it cannot be stopped.
    async fn stop(&self, name: &UnitName) -> Result<()>;

    /// Stops a unit and removes what is kept of it: state, logs, files it wrote into its root.
    ///
    /// # Errors
    /// Where something cannot be removed.
    async fn remove(&self, name: &UnitName) -> Result<()>;

    /// The units as they are now.
    async fn list(&self) -> Vec<UnitState>;

    /// Every change of a unit's state from now on. A receiver that lags asks [`Supervisor::list`] again.
    fn watch(&self) -> broadcast::Receiver<UnitState>;

    /// What a unit wrote, also one that has ended.
    ///
    /// # Errors
    /// Where there is no such unit and nothing is kept of it.
    async fn logs(&self, name: &UnitName, options: LogOptions) -> Result<LogStream>;

    /// Removes what is kept of units that are neither running nor among these: leftovers of objects that were
    /// deleted while nobody looked.
    ///
    /// # Errors
    /// Where something cannot be removed.
    async fn prune(&self, keep: &HashSet<UnitName>) -> Result<()>;

    /// Stops all units, at the same time. What is kept of them stays.
    async fn shutdown(&self);
}

/// What a supervisor can do, and why not where it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its name, for the node's status.
    pub name: &'static str,
    /// How a unit is kept apart from the node.
    pub isolation: Isolation,
    /// A unit's root can be a shared image with a writable layer of its own.
    pub shared_roots: bool,
    /// CPU and memory limits are enforced.
    pub limits: bool,
    /// What is missing, in words, for the node's status.
    pub notes: Vec<String>,
}

/// How a unit is kept apart from the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Its own mounts; as root.
    Mounts,
    /// Its own mounts in a user namespace, where it has one single user.
    UserNamespace,
    /// Another root directory only: no volumes, no /proc and /dev but what the image has.
    RootDirectory,
    /// None, so that no image can run; with the reason.
    None(String),
}

/// A unit as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitState {
    /// Which.
    pub name: UnitName,
    /// The revision that was started.
    pub revision: String,
    /// What it does now.
    pub phase: UnitPhase,
    /// How many times it was started again.
    pub restarts: u32,
    /// When it was started last.
    pub started: Option<Timestamp>,
    /// When it ended last.
    pub finished: Option<Timestamp>,
    /// How it ended last.
    pub last_exit: Option<Exit>,
}

/// What a unit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitPhase {
    /// About to run.
    Starting,
    /// Running, as this process.
    Running {
        /// The process.
        pid: u32,
    },
    /// It has ended and is started again then.
    BackOff {
        /// When.
        until: Timestamp,
    },
    /// It was asked to stop.
    Stopping,
    /// It was stopped.
    Stopped,
    /// It has ended well and is not started again.
    Succeeded,
    /// It has failed and is not started again.
    Failed {
        /// Why not.
        why: FailedWhy,
    },
}

impl UnitPhase {
    /// Nothing of it runs or will.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Stopped | Self::Succeeded | Self::Failed { .. })
    }
}

/// Why a unit that failed is not started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailedWhy {
    /// All its tries are used up.
    Retries,
    /// Its time is over.
    Deadline,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It never ran; this is why.
    NotStarted(String),
}

impl Exit {
    /// Whether it is success.
    #[must_use]
    pub fn success(&self) -> bool {
        *self == Self::Code(0)
    }

    /// The code as shells and Kubernetes show it: 128 and the signal's number for a signal, 128 where nothing
    /// ran (Kubernetes' `ContainerCannotRun`).
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Code(code) => *code,
            Self::Signal(signal) => 128 + signal,
            Self::NotStarted(_) => 128,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
        }
    }
}
