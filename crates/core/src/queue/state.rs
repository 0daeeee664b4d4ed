//! The state of the queue and its one transition function.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use super::Backoff;

/// A moment, as the time since some fixed start. The queue never asks a clock.
pub type Time = Duration;

/// Which line a key waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Somebody changed something and waits for the effect.
    Change,
    /// Nothing changed as far as is known: the first listing after a start, a resync. Served when
    /// no change waits, or when it has waited for too long.
    Resync,
}

/// What the queue is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<K, C> {
    /// A key may have something to do.
    Event {
        /// Which.
        key: K,
        /// Why.
        cause: C,
        /// How urgent.
        lane: Lane,
        /// Whether the resource itself was changed by its author. That is a new attempt: earlier
        /// failures say nothing about it, so it does not wait for their back-off.
        fresh: bool,
    },
    /// A run that was started has ended.
    Done {
        /// Which.
        key: K,
        /// How.
        outcome: Outcome,
    },
    /// Time has passed.
    Tick,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Well. `wake` asks for another run at that moment.
    Success {
        /// When something that was read will turn true by time alone.
        wake: Option<Time>,
    },
    /// It failed and may succeed later: run again after a back-off.
    Retry,
    /// It failed and only a change can help: run again at the next event.
    Stuck,
    /// The resource is gone: forget everything about the key.
    Gone,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect<K, C> {
    /// Run this key now; answer with [`Input::Done`].
    Start {
        /// Which.
        key: K,
        /// Everything that asked for this run.
        causes: Causes<C>,
        /// How many runs in a row have failed before this one.
        failures: u32,
        /// How long the key has waited.
        waited: Duration,
    },
    /// Send [`Input::Tick`] at this moment (or any input before it).
    WakeAt(Time),
}

/// Why a run happens: the causes of all events that became one run, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causes<C> {
    /// The distinct causes, at most [`Causes::LIMIT`].
    pub list: Vec<C>,
    /// How many more there were.
    pub dropped: u32,
}

impl<C: PartialEq> Causes<C> {
    /// How many causes a key keeps.
    pub const LIMIT: usize = 16;

    fn add(&mut self, cause: C) {
        if self.list.contains(&cause) {
            return;
        }
        if self.list.len() < Self::LIMIT {
            self.list.push(cause);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

impl<C> Default for Causes<C> {
    fn default() -> Self {
        Self { list: Vec::new(), dropped: 0 }
    }
}

/// The bounds and habits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// How many runs at once; at least 1.
    pub concurrency: usize,
    /// After how long a key of [`Lane::Resync`] goes before keys of [`Lane::Change`].
    pub age_bound: Duration,
    /// How failing keys wait.
    pub backoff: Backoff,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { concurrency: 4, age_bound: Duration::from_secs(2), backoff: Backoff::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Queued { lane: Lane, since: Time },
    Running { again: Option<Lane>, fresh: bool },
    BackingOff { until: Time, lane: Lane },
}

#[derive(Debug)]
struct Entry<C> {
    state: State,
    causes: Causes<C>,
    failures: u32,
    wake: Option<Time>,
}

/// Orders the runs of many keys: first in, first out; one run of a key at a time; events that
/// arrive meanwhile are merged with their causes kept; a failing key backs off, which no event can
/// shorten (unless its author changed it) or lengthen.
#[derive(Debug)]
pub struct Queue<K, C> {
    options: QueueOptions,
    entries: HashMap<K, Entry<C>>,
    change: VecDeque<K>,
    resync: VecDeque<K>,
    timers: BTreeSet<(Time, K)>,
    running: usize,
}

impl<K, C> Queue<K, C>
where
    K: Clone + Ord + Hash + Debug,
    C: PartialEq + Clone,
{
    /// An empty queue.
    pub fn new(options: QueueOptions) -> Self {
        Self {
            options: QueueOptions { concurrency: options.concurrency.max(1), ..options },
            entries: HashMap::new(),
            change: VecDeque::new(),
            resync: VecDeque::new(),
            timers: BTreeSet::new(),
            running: 0,
        }
    }

    /// Takes one input at a moment and says what to do. Moments must not go back; one that does
    /// counts as no time having passed for whatever is waiting.
    pub fn handle(&mut self, now: Time, input: Input<K, C>) -> Vec<Effect<K, C>> {
        match input {
            Input::Event { key, cause, lane, fresh } => self.event(now, key, cause, lane, fresh),
            Input::Done { key, outcome } => self.done(now, key, outcome),
            Input::Tick => {}
        }
        self.ring(now);
        self.start(now)
    }

    /// How many keys wait to run now, not counting those that back off.
    pub fn depth(&self) -> usize {
        self.change.len() + self.resync.len()
    }

    /// How many keys run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many keys it knows anything about.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it knows no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn event(&mut self, now: Time, key: K, cause: C, lane: Lane, fresh: bool) {
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            state: State::Idle,
            causes: Causes::default(),
            failures: 0,
            wake: None,
        });
        entry.causes.add(cause);
        if fresh {
            entry.failures = 0;
        }
        match &mut entry.state {
            State::Idle => self.enqueue(now, key, lane),
            State::Running { again, fresh: anew } => {
                *again = Some(again.map_or(lane, |other| other.min(lane)));
                *anew |= fresh;
            }
            State::BackingOff { until, .. } if fresh => {
                let until = *until;
                self.timers.remove(&(until, key.clone()));
                self.enqueue(now, key, lane);
            }
            State::BackingOff { lane: waiting, .. } => *waiting = lane.min(*waiting),
            State::Queued { lane: Lane::Resync, since } if lane == Lane::Change => {
                let since = *since;
                entry.state = State::Queued { lane, since };
                self.resync.retain(|k| *k != key);
                self.change.push_back(key);
            }
            State::Queued { .. } => {}
        }
    }

    fn enqueue(&mut self, now: Time, key: K, lane: Lane) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Queued { lane, since: now };
            if let Some(wake) = entry.wake.take() {
                self.timers.remove(&(wake, key.clone()));
            }
            match lane {
                Lane::Change => self.change.push_back(key),
                Lane::Resync => self.resync.push_back(key),
            }
        }
    }

    fn done(&mut self, now: Time, key: K, outcome: Outcome) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let State::Running { again, fresh } = entry.state else { return };
        self.running = self.running.saturating_sub(1);
        match (outcome, again) {
            // What failed is not what the author wants any more.
            (_, Some(lane)) if fresh => {
                entry.failures = 0;
                self.enqueue(now, key, lane);
            }
            (Outcome::Retry, again) => {
                entry.failures = entry.failures.saturating_add(1);
                let until = now.saturating_add(self.options.backoff.after(&key, entry.failures));
                entry.state = State::BackingOff { until, lane: again.unwrap_or(Lane::Change) };
                self.timers.insert((until, key));
            }
            (outcome, Some(lane)) => {
                match outcome {
                    Outcome::Success { .. } | Outcome::Gone => entry.failures = 0,
                    _ => entry.failures = entry.failures.saturating_add(1),
                }
                self.enqueue(now, key, lane);
            }
            (Outcome::Success { wake }, None) => {
                entry.failures = 0;
                entry.state = State::Idle;
                match wake {
                    Some(at) => {
                        entry.wake = Some(at);
                        self.timers.insert((at, key));
                    }
                    None => drop(self.entries.remove(&key)),
                }
            }
            (Outcome::Stuck, None) => {
                entry.failures = entry.failures.saturating_add(1);
                entry.state = State::Idle;
            }
            (Outcome::Gone, None) => drop(self.entries.remove(&key)),
        }
    }

    /// Moves keys whose time has come into their line.
    fn ring(&mut self, now: Time) {
        while let Some((at, key)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.wake = None;
            let lane = match entry.state {
                State::BackingOff { lane, .. } => lane,
                _ => Lane::Change,
            };
            self.enqueue(now, key, lane);
        }
    }

    fn start(&mut self, now: Time) -> Vec<Effect<K, C>> {
        let mut effects = Vec::new();
        while self.running < self.options.concurrency {
            let Some(key) = self.next(now) else { break };
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let State::Queued { since, .. } = entry.state else { continue };
            entry.state = State::Running { again: None, fresh: false };
            self.running += 1;
            effects.push(Effect::Start {
                key,
                causes: std::mem::take(&mut entry.causes),
                failures: entry.failures,
                waited: now.saturating_sub(since),
            });
        }
        if let Some((at, _)) = self.timers.first() {
            effects.push(Effect::WakeAt(*at));
        }
        effects
    }

    fn next(&mut self, now: Time) -> Option<K> {
        let overdue = self.resync.front().is_some_and(|key| match self.entries.get(key).map(|e| e.state) {
            Some(State::Queued { since, .. }) => now.saturating_sub(since) >= self.options.age_bound,
            _ => false,
        });
        if overdue {
            return self.resync.pop_front();
        }
        self.change.pop_front().or_else(|| self.resync.pop_front())
    }
}
