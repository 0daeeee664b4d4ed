//! How fast a leader is replaced.

use std::time::Duration;

/// How long a lease lasts, and how it is kept. The defaults are those of client-go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    duration: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

impl Timing {
    /// `duration`: how long others wait after a sign of life before they take over, in whole
    /// seconds. `renew_deadline`: how long a leader that cannot renew goes on. `retry`: how often
    /// everybody looks.
    ///
    /// None unless each is shorter than the one before: a leader has to stop before another begins,
    /// and has to have the chance to renew before it stops.
    pub fn new(duration: Duration, renew_deadline: Duration, retry: Duration) -> Option<Self> {
        // client-go's factor for the jitter of retries.
        let slowest_retry = retry.mul_f64(JITTER);
        let whole = duration.subsec_nanos() == 0 && i32::try_from(duration.as_secs()).is_ok();
        let ordered = duration > renew_deadline && renew_deadline > slowest_retry && !retry.is_zero();
        (whole && ordered).then_some(Self { duration, renew_deadline, retry })
    }

    pub(super) fn duration(&self) -> Duration {
        self.duration
    }

    pub(super) fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The wait before the next look: a little longer each time by a share of chance between 0 and
    /// 1, so that candidates do not look all at once.
    pub(super) fn retry(&self, chance: f64) -> Duration {
        self.retry.mul_f64(1.0 + (JITTER - 1.0) * chance.clamp(0.0, 1.0))
    }
}

/// How much longer than the retry period a retry may take.
const JITTER: f64 = 1.2;

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_stops_before_another_begins() {
        let seconds = Duration::from_secs;
        assert_eq!(Timing::new(seconds(15), seconds(10), seconds(2)), Some(Timing::default()));
        assert_eq!(Timing::new(seconds(10), seconds(10), seconds(2)), None);
        assert_eq!(Timing::new(seconds(15), seconds(2), seconds(2)), None);
        assert_eq!(Timing::new(Duration::from_millis(1500), seconds(1), Duration::from_millis(100)), None);
        assert_eq!(Timing::new(seconds(2), seconds(1), Duration::ZERO), None);
    }
}
