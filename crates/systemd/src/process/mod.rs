//! Units as plain child processes of this one: where systemd is not there, or is not ours.
//!
//! They end when this process ends in order, and what is left of them when it did not is ended at its next
//! start. CPU and memory limits are not enforced, and a process that leaves its group on purpose
//! (`setsid`) is not found again. All of that is what systemd is for.

mod backoff;
mod child;
mod detect;
mod launcher;
mod record;
mod supervisor;
mod worker;

pub use backoff::BackOff;
pub use supervisor::{ProcessOptions, ProcessSupervisor};
