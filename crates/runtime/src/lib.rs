//! Drives Horchestra's reconcilers on tokio: watches, caches, workers, apply, metrics, replay.

mod target;

pub use self::target::{
    ApplyOptions, DeleteOptions, Listing, Note, Propagation, Revision, Scope, Target, TargetError, WatchEvent, WatchStream,
};
