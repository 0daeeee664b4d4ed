use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

type Q = Queue<u8, u16>;

fn event(key: u8, cause: u16) -> Input<u8, u16> {
    Input::Event { key, cause, lane: Lane::Change, fresh: false }
}

fn done(key: u8, outcome: Outcome) -> Input<u8, u16> {
    Input::Done { key, outcome }
}

const OK: Outcome = Outcome::Success { wake: None };

fn started(effects: &[Effect<u8, u16>]) -> Vec<(u8, Vec<u16>, u32)> {
    effects
        .iter()
        .filter_map(|e| match e {
            Effect::Start { key, causes, failures, .. } => Some((*key, causes.list.clone(), *failures)),
            Effect::WakeAt(_) => None,
        })
        .collect()
}

fn ms(n: u64) -> Time {
    Duration::from_millis(n)
}

fn queue(concurrency: usize) -> Q {
    Queue::new(QueueOptions { concurrency, backoff: Backoff::new(ms(100), ms(10_000)), ..Default::default() })
}

#[test]
fn events_during_a_run_become_one_run_with_all_causes() {
    let mut q = queue(4);
    assert_eq!(started(&q.handle(ms(0), event(1, 10))), [(1, vec![10], 0)]);
    assert!(q.handle(ms(1), event(1, 11)).is_empty());
    assert!(q.handle(ms(2), event(1, 12)).is_empty());
    assert!(q.handle(ms(2), event(1, 11)).is_empty());
    assert_eq!(started(&q.handle(ms(3), done(1, OK))), [(1, vec![11, 12], 0)]);
    assert!(q.handle(ms(4), done(1, OK)).is_empty());
    assert!(q.is_empty());
}

#[test]
fn no_event_shortens_a_backoff_but_the_authors_change_does() {
    let mut q = queue(1);
    q.handle(ms(0), event(1, 1));
    let effects = q.handle(ms(0), done(1, Outcome::Retry));
    let [Effect::WakeAt(at)] = effects[..] else { panic!("{effects:?}") };
    assert!(at >= ms(90) && at <= ms(100), "{at:?}");
    for t in 1..89 {
        assert_eq!(started(&q.handle(ms(t), event(1, 2))), []);
    }
    assert_eq!(started(&q.handle(ms(100), Input::Tick)), [(1, vec![2], 1)]);
    q.handle(ms(101), done(1, Outcome::Retry));
    let fresh = Input::Event { key: 1, cause: 3, lane: Lane::Change, fresh: true };
    assert_eq!(started(&q.handle(ms(102), fresh)), [(1, vec![3], 0)]);
}

#[test]
fn success_resets_the_backoff() {
    let mut q = queue(1);
    let mut now = 0;
    q.handle(ms(now), event(1, 0));
    for expected in [100, 200, 400, 800] {
        let effects = q.handle(ms(now), done(1, Outcome::Retry));
        let [Effect::WakeAt(at)] = effects[..] else { panic!("{effects:?}") };
        let wait = at - ms(now);
        assert!(wait <= ms(expected) && wait >= ms(expected * 9 / 10), "{wait:?} of {expected}");
        now += expected;
        assert_eq!(started(&q.handle(ms(now), Input::Tick)).len(), 1);
    }
    q.handle(ms(now), done(1, OK));
    q.handle(ms(now), event(1, 0));
    let effects = q.handle(ms(now), done(1, Outcome::Retry));
    let [Effect::WakeAt(at)] = effects[..] else { panic!("{effects:?}") };
    assert!(at - ms(now) <= ms(100));
}

#[test]
fn a_resync_waits_for_changes_up_to_its_age_bound() {
    let mut q = queue(1);
    q.handle(ms(0), event(0, 0));
    q.handle(ms(1), Input::Event { key: 9, cause: 0, lane: Lane::Resync, fresh: false });
    q.handle(ms(2), event(1, 0));
    q.handle(ms(3), event(2, 0));
    assert_eq!(started(&q.handle(ms(4), done(0, OK)))[0].0, 1);
    assert_eq!(started(&q.handle(ms(2_001), done(1, OK)))[0].0, 9);
    assert_eq!(started(&q.handle(ms(2_002), done(9, OK)))[0].0, 2);
}

#[test]
fn a_wake_is_one_run_and_any_earlier_run_replaces_it() {
    let mut q = queue(1);
    q.handle(ms(0), event(1, 0));
    let effects = q.handle(ms(0), done(1, Outcome::Success { wake: Some(ms(50)) }));
    assert_eq!(effects, [Effect::WakeAt(ms(50))]);
    assert_eq!(started(&q.handle(ms(50), Input::Tick)).len(), 1);
    q.handle(ms(50), done(1, Outcome::Success { wake: Some(ms(90)) }));
    assert_eq!(started(&q.handle(ms(60), event(1, 5))), [(1, vec![5], 0)]);
    q.handle(ms(61), done(1, OK));
    assert!(q.handle(ms(95), Input::Tick).is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Event(u8, bool, bool),
    Finish(usize, u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..6, any::<bool>(), any::<bool>()).prop_map(|(k, resync, fresh)| Step::Event(k, resync, fresh)),
        4 => (any::<usize>(), 0u8..4).prop_map(|(i, o)| Step::Finish(i, o)),
        2 => (0u64..500).prop_map(Step::Pass),
    ]
}

proptest! {
    /// One run per key, the concurrency bound, no lost cause, no run inside a back-off, and an
    /// event is always followed by a run once everything that runs has ended.
    #[test]
    fn invariants(steps in prop::collection::vec(step(), 1..200), concurrency in 1usize..4) {
        let mut q = queue(concurrency);
        let mut now = 0u64;
        let mut running: Vec<u8> = Vec::new();
        let mut open: HashMap<u8, HashSet<u16>> = HashMap::new();
        let mut blocked: HashMap<u8, u64> = HashMap::new();
        let mut failures: HashMap<u8, u32> = HashMap::new();
        let mut anew: HashSet<u8> = HashSet::new();
        let mut cause = 0u16;
        let check = |now: u64, effects: Vec<Effect<u8, u16>>, running: &mut Vec<u8>, open: &mut HashMap<u8, HashSet<u16>>, blocked: &mut HashMap<u8, u64>| -> Result<(), TestCaseError> {
            for e in effects {
                let Effect::Start { key, causes, .. } = e else { continue };
                prop_assert!(!running.contains(&key), "{key} runs twice");
                running.push(key);
                prop_assert!(running.len() <= concurrency);
                let wanted = open.remove(&key).unwrap_or_default();
                if causes.dropped == 0 {
                    prop_assert_eq!(causes.list.into_iter().collect::<HashSet<_>>(), wanted);
                }
                prop_assert!(blocked.remove(&key).is_none_or(|until| now >= until), "{key} ran inside its back-off");
            }
            Ok(())
        };
        for s in steps {
            match s {
                Step::Event(key, resync, fresh) => {
                    cause += 1;
                    open.entry(key).or_default().insert(cause);
                    if fresh {
                        blocked.remove(&key);
                        failures.insert(key, 0);
                        if running.contains(&key) {
                            anew.insert(key);
                        }
                    }
                    let lane = if resync { Lane::Resync } else { Lane::Change };
                    let effects = q.handle(ms(now), Input::Event { key, cause, lane, fresh });
                    check(now, effects, &mut running, &mut open, &mut blocked)?;
                }
                Step::Finish(i, o) if !running.is_empty() => {
                    let key = running.remove(i % running.len());
                    let outcome = [OK, Outcome::Retry, Outcome::Stuck, Outcome::Gone][o as usize];
                    let n = failures.entry(key).or_default();
                    match outcome {
                        _ if anew.remove(&key) => *n = 0,
                        Outcome::Retry => {
                            *n += 1;
                            // At least nine tenths of the nominal wait.
                            blocked.insert(key, now + (100u64 << (*n - 1).min(10)).min(10_000) * 9 / 10);
                        }
                        Outcome::Stuck => *n += 1,
                        _ => *n = 0,
                    }
                    let effects = q.handle(ms(now), done(key, outcome));
                    check(now, effects, &mut running, &mut open, &mut blocked)?;
                }
                Step::Finish(..) => {}
                Step::Pass(t) => {
                    now += t;
                    let effects = q.handle(ms(now), Input::Tick);
                    check(now, effects, &mut running, &mut open, &mut blocked)?;
                }
            }
        }
        // Let everything end: whatever was asked for has been run.
        for _ in 0..1000 {
            now += 10_000;
            let effects = q.handle(ms(now), Input::Tick);
            check(now, effects, &mut running, &mut open, &mut blocked)?;
            while let Some(key) = running.pop() {
                let effects = q.handle(ms(now), done(key, OK));
                check(now, effects, &mut running, &mut open, &mut blocked)?;
            }
        }
        prop_assert!(open.is_empty(), "never run: {open:?}");
        prop_assert_eq!((q.depth(), q.running()), (0, 0));
    }
}
