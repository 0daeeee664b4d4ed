//! Server-side apply: who owns which field, and what an object becomes.
//!
//! The rules are those of <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.

mod compare;
mod conflict;
mod list;
mod manager;
mod merge;
mod owned;
mod remove;
mod scope;
mod shape;
mod write;

#[cfg(test)]
mod tests;

pub use self::conflict::{ApplyError, Conflict};
pub use self::manager::Manager;
pub use self::write::{apply, update};
