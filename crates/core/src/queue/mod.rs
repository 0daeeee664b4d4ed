//! The work queue, as a state machine with the time passed in.

mod backoff;
mod state;
#[cfg(test)]
mod tests;

pub use self::backoff::Backoff;
pub use self::state::{Causes, Effect, Input, Lane, Outcome, Queue, QueueOptions, Time};
