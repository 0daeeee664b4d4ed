//! Drives Horchestra's reconcilers on tokio: watches, caches, workers, apply, metrics, replay.

mod admission;
mod cache;
mod caches;
mod cause;
mod controller;
mod execute;
mod informer;
mod inner;
mod interest;
mod journal;
mod metrics;
mod note;
mod options;
mod router;
mod run;
mod runtime;
mod source;
mod status;
mod table;
mod target;
pub mod testing;

pub use self::admission::{Admission, Denied, Operation, Review};
pub use self::cause::Cause;
pub use self::journal::{Difference, Journal, JournalEntry, Replay};
pub use self::note::Note;
pub use self::options::{Reaction, ReconcilerOptions};
pub use self::router::TargetFor;
pub use self::runtime::{Runtime, RuntimeOptions};
pub use self::table::Table;
pub use self::target::{
    ApplyOptions, DeleteOptions, Listing, Propagation, Revision, Scope, Target, TargetError, WatchEvent,
    WatchStream,
};
