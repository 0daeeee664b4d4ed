//! How long a failing key waits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Exponential back-off with a ceiling and jitter.
///
/// The jitter is a function of the key and the number of failures, so that a run can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
}

impl Backoff {
    /// Waits `base` after the first failure, twice as long after each further one, never longer
    /// than `cap`. A base of zero or above the cap is raised or lowered to fit.
    pub fn new(base: Duration, cap: Duration) -> Self {
        let base = base.max(Duration::from_millis(1));
        Self { base, cap: cap.max(base) }
    }

    /// The wait after this many failures in a row, at least one: between 90 and 100 % of the nominal one.
    pub fn after<K: Hash>(&self, key: &K, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let nominal = self.base.checked_mul(1 << doublings).unwrap_or(self.cap).min(self.cap);
        let mut hasher = DefaultHasher::new();
        (key, failures).hash(&mut hasher);
        let tenths_of_percent = u32::try_from(hasher.finish() % 101).unwrap_or(0);
        nominal.saturating_sub(nominal / 1000 * tenths_of_percent)
    }
}

impl Default for Backoff {
    /// From 100 ms to one minute.
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(60))
    }
}
