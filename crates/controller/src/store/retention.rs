use std::time::Duration;

/// How much history the store keeps for watchers and for lists that continue. What goes beyond is compacted with the next
/// commit, down to seven eighths of the bound so that not every commit compacts.
///
/// The bounds hold up to one group of commits: what a group adds is never compacted by the same group, so that a
/// watcher that keeps up is never cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most events.
    pub max_events: usize,
    /// The most bytes in memory. An upper estimate: keys, values, and the values that were there before.
    pub max_bytes: usize,
    /// The greatest age, by the system's clock; up to an eighth more is kept. An idle store keeps its last events for longer.
    pub max_age: Option<Duration>,
}

impl Default for Retention {
    /// 100,000 events, 64 MiB, and no bound by age.
    fn default() -> Self {
        Retention { max_events: 100_000, max_bytes: 64 * 1024 * 1024, max_age: None }
    }
}
