//! Tests of reconcilers without any cluster: objects, one call, and assertions on the answer.
//!
//! The same test runs the function natively ([`FakeCluster::run`]) and the compiled module
//! ([`FakeCluster::run_module`]).
//!
//! Assertions panic with what was there instead. Not for production: nothing here is fast, and
//! writes are no server-side apply.

mod assertions;
mod cluster;
mod evaluation;
mod kinds;
mod source;
mod takeoff;

pub use self::cluster::FakeCluster;
pub use self::evaluation::Evaluation;
