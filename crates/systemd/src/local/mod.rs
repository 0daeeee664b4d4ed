//! A node in the process of its controller: Applications become units of a [`Supervisor`](crate::Supervisor).
//!
//! It is one more runtime. Its reconciler of Applications answers with a `Unit`, an object whose
//! target is the supervisor of this machine, and reads back how that unit is.

mod application;
mod files;
mod images;
mod node;
mod salt;
mod units;

pub use self::node::{LocalNode, LocalNodeOptions, SupervisorChoice};
