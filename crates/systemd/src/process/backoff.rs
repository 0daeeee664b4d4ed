use std::time::Duration;

/// How long a unit waits before it is started again: doubling, up to a bound, and from the beginning once it has
/// run well for long enough (as Kubernetes' kubelet does, from 1 s instead of 10 s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first wait.
    pub initial: Duration,
    /// The longest wait.
    pub max: Duration,
    /// A run of this length begins anew.
    pub reset_after: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(300),
            reset_after: Duration::from_secs(600),
        }
    }
}

impl BackOff {
    /// The wait after a run of length `ran`, when the wait before it was `last`.
    pub(super) fn next(&self, last: Option<Duration>, ran: Duration) -> Duration {
        match last {
            Some(last) if ran < self.reset_after => last.saturating_mul(2).min(self.max),
            _ => self.initial.min(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_a_bound_and_begins_anew() {
        let s = Duration::from_secs;
        let b = BackOff { initial: s(1), max: s(5), reset_after: s(60) };
        assert_eq!(b.next(None, s(0)), s(1));
        assert_eq!(b.next(Some(s(1)), s(0)), s(2));
        assert_eq!(b.next(Some(s(4)), s(59)), s(5));
        assert_eq!(b.next(Some(s(5)), s(60)), s(1));
    }
}
