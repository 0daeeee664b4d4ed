//! Who leads, decided from what was seen and when. No clock, no network: the time is passed in, as
//! the time since some fixed start.

use std::time::Duration;

use super::Timing;

/// A moment.
type Time = Duration;

/// What a Lease says, as far as an election goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// Who leads; empty if nobody does.
    pub(super) holder: String,
    /// How long a sign of life of the holder counts, as the holder said.
    pub(super) duration: Duration,
    /// How often the leader has changed.
    pub(super) transitions: i32,
    /// The version of the object: another one is another sign of life.
    pub(super) version: String,
}

/// What to do after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Create the Lease as its holder.
    Create,
    /// Write the Lease, at the version that was seen: to stay the holder, or to become it.
    Take {
        /// How often the leader has changed, this time included.
        transitions: i32,
        /// Whether the holder changes by it.
        anew: bool,
    },
    /// Somebody else leads.
    Wait,
}

/// The view of one candidate.
///
/// The times in a Lease are never compared with the own clock: what counts is how long ago *this*
/// process saw it change. So clocks that differ do no harm; only clocks that run at different speeds
/// would. Source: the documentation of client-go's leaderelection.
#[derive(Debug)]
pub(super) struct Election {
    me: String,
    timing: Timing,
    seen: Option<(Record, Time)>,
    /// When the last renewal that succeeded was asked for.
    renewed: Option<Time>,
}

impl Election {
    pub(super) fn new(me: String, timing: Timing) -> Self {
        Self { me, timing, seen: None, renewed: None }
    }

    /// The Lease was read.
    pub(super) fn look(&mut self, now: Time, record: Option<Record>) -> Step {
        let Some(record) = record else {
            self.seen = None;
            self.renewed = None;
            return Step::Create;
        };
        let since = match &self.seen {
            Some((before, since)) if *before == record => *since,
            _ => now,
        };
        self.seen = Some((record.clone(), since));
        if record.holder == self.me {
            return Step::Take { transitions: record.transitions, anew: false };
        }
        self.renewed = None;
        let expired = now.saturating_sub(since) >= record.duration;
        if record.holder.is_empty() || expired {
            return Step::Take { transitions: record.transitions.saturating_add(1), anew: true };
        }
        Step::Wait
    }

    /// A write that was begun at `asked` has made this process the holder, or kept it so.
    pub(super) fn took(&mut self, asked: Time) {
        self.renewed = Some(asked);
    }

    /// Until when this process may lead without another renewal; none if it does not lead. Counted
    /// from when the last renewal was asked for, which is before the others can have seen it.
    pub(super) fn leads_until(&self) -> Option<Time> {
        self.renewed.map(|at| at.saturating_add(self.timing.renew_deadline()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(holder: &str, version: u32) -> Option<Record> {
        let version = version.to_string();
        Some(Record { holder: holder.into(), duration: s(15), transitions: 4, version })
    }

    fn election() -> Election {
        Election::new("me".into(), Timing::default())
    }

    #[test]
    fn without_a_lease_or_a_holder_it_is_taken_at_once() {
        assert_eq!(election().look(s(0), None), Step::Create);
        assert_eq!(election().look(s(0), record("", 1)), Step::Take { transitions: 5, anew: true });
    }

    #[test]
    fn a_holder_is_replaced_only_after_it_was_silent_for_the_whole_duration() {
        let mut election = election();
        assert_eq!(election.look(s(100), record("other", 1)), Step::Wait, "however old it says it is");
        assert_eq!(election.look(s(114), record("other", 1)), Step::Wait);
        assert_eq!(election.look(s(114), record("other", 2)), Step::Wait, "a sign of life");
        assert_eq!(election.look(s(128), record("other", 2)), Step::Wait);
        assert_eq!(election.look(s(129), record("other", 2)), Step::Take { transitions: 5, anew: true });
    }

    #[test]
    fn a_leader_renews_and_gives_up_before_anybody_else_may_begin() {
        let mut election = election();
        assert_eq!(election.leads_until(), None);
        election.look(s(0), None);
        election.took(s(0));
        assert_eq!(election.leads_until(), Some(s(10)));
        assert_eq!(election.look(s(2), record("me", 1)), Step::Take { transitions: 4, anew: false });
        assert_eq!(election.leads_until(), Some(s(10)), "asking is not having");
        election.took(s(2));
        assert_eq!(election.leads_until(), Some(s(12)));
    }

    #[test]
    fn somebody_else_in_its_place_ends_it_at_once() {
        let mut election = election();
        election.look(s(0), None);
        election.took(s(0));
        assert_eq!(election.look(s(1), record("other", 9)), Step::Wait);
        assert_eq!(election.leads_until(), None);
    }

    /// Two candidates whose looks and writes interleave in any order, with clocks that start
    /// anywhere, never lead at the same moment.
    #[test]
    fn two_never_lead_at_once() {
        struct Candidate {
            election: Election,
            skew: Duration,
            next: u64,
            pending: Option<(Option<String>, i32, Duration)>,
        }
        for seed in 0_u64..2_000 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut chance = move |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            let mut lease: Option<Record> = None;
            let mut version = 0_u32;
            let mut all: Vec<Candidate> = ["a", "b"]
                .map(|me| Candidate {
                    election: Election::new(me.into(), Timing::default()),
                    skew: s(chance(1_000)),
                    next: chance(3),
                    pending: None,
                })
                .into();
            let mut led = [false; 2];
            for second in 0..200 {
                for (who, candidate) in all.iter_mut().enumerate() {
                    if candidate.next > second {
                        continue;
                    }
                    let local = s(second) + candidate.skew;
                    let me = ["a", "b"][who];
                    if let Some((at, transitions, asked)) = candidate.pending.take() {
                        // The write arrives now, if the version is still the one it was made for.
                        if lease.as_ref().map(|l| l.version.clone()) == at {
                            version += 1;
                            let version = version.to_string();
                            lease = Some(Record { holder: me.into(), duration: s(15), transitions, version });
                            // The answer may be lost.
                            if chance(8) > 0 {
                                candidate.election.took(asked);
                            }
                        }
                        candidate.next = second + 1 + chance(2);
                        continue;
                    }
                    let seen = lease.clone();
                    let at = seen.as_ref().map(|l| l.version.clone());
                    match candidate.election.look(local, seen) {
                        Step::Create => candidate.pending = Some((at, 0, local)),
                        Step::Take { transitions, .. } => candidate.pending = Some((at, transitions, local)),
                        Step::Wait => {}
                    }
                    // Mostly soon; sometimes a process sleeps for long in the middle of anything.
                    candidate.next = second + if chance(12) == 0 { 30 } else { chance(4) };
                }
                let leading: Vec<bool> = all
                    .iter()
                    .map(|c| c.election.leads_until().is_some_and(|until| s(second) + c.skew < until))
                    .collect();
                assert!(!(leading[0] && leading[1]), "both lead at {second} with seed {seed}");
                led = [led[0] || leading[0], led[1] || leading[1]];
            }
            assert!(led[0] || led[1], "nobody ever led with seed {seed}");
        }
    }
}
