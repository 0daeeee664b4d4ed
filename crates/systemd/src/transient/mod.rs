//! Units as transient systemd services: started over D-Bus with typed properties, supervised by
//! nothing but systemd.
//!
//! They outlive this program: a unit itself records what it was made from, and is found again by it.
//! They do not outlive a reboot; whoever knows what should run starts them again.

mod environment;
mod hardening;
mod journal;
mod manager;
mod marks;
mod program;
mod properties;
mod root;
mod state;
mod supervisor;
mod users;

pub use supervisor::{SystemdOptions, SystemdSupervisor};
