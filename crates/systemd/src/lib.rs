//! A Linux node: OCI images as supervised workloads.
//!
//! What should run is a [`Unit`]; who runs it is a [`Supervisor`].

mod error;
pub mod launch;
mod local;
mod log;
mod process;
mod supervisor;
mod transient;
mod unit;

pub use error::Error;
pub use local::{LocalNode, LocalNodeOptions, SupervisorChoice};
pub use log::{LogOptions, LogStream};
pub use process::{BackOff, ProcessOptions, ProcessSupervisor};
pub use supervisor::{Capabilities, Exit, FailedWhy, Isolation, Supervisor, UnitPhase, UnitState};
pub use transient::{SystemdOptions, SystemdSupervisor};
pub use unit::{LogLimits, Mount, MountSource, Restart, Root, Security, Unit, UnitLimits, UnitName};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
