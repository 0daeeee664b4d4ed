//! What whoever comes from the Air Traffic Controller expects of an Airway, case by case.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod admission;
mod airway;
mod modes;
mod scale;
mod status;
