//! Jobs and Deployments on plain Linux: what should exist for one is an Application, or several.
//!
//! Pure functions, driven like any other reconciler. What an Application cannot be told is refused
//! by the path of its field, never dropped.

mod deployment;
mod job;
mod template;

pub use self::deployment::deployment;
pub use self::job::job;
