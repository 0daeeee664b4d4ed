//! Retention, with the time passed in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::batch::Stage;
use super::state::State;
use super::transaction::Transaction;
use super::{Expect, Retention, Revision, Write};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn write(state: &mut State, key: &str, now: SystemTime) -> Revision {
    let write = Write::Put { key: key.into(), value: "v".into(), expect: Expect::Any };
    let mut stage = Stage::new(state);
    let revision = stage.write(Transaction::new(vec![write]).unwrap(), now).unwrap();
    let batch = stage.finish(now);
    state.apply(&batch);
    revision
}

#[test]
fn what_is_too_old_goes_with_the_next_commit() {
    let mut state = State::new(Retention { max_age: Some(Duration::from_secs(80)), ..Retention::default() });
    for second in 0..=90 {
        write(&mut state, "k", at(second));
    }
    assert_eq!(state.compacted(), Revision::ZERO, "an eighth more is kept");
    // Revision 2 is of second 0. At second 91 what is older than 80 seconds goes: seconds 0 to 10, revisions 2 to 12.
    write(&mut state, "k", at(91));
    assert_eq!(state.compacted(), Revision(12));
}

#[test]
fn a_clock_that_turns_back_compacts_nothing() {
    let mut state = State::new(Retention { max_age: Some(Duration::from_secs(80)), ..Retention::default() });
    write(&mut state, "k", at(1000));
    write(&mut state, "k", at(10));
    assert_eq!(state.compacted(), Revision::ZERO);
}

#[test]
fn a_group_is_never_compacted_by_itself() {
    let mut state = State::new(Retention { max_events: 4, ..Retention::default() });
    write(&mut state, "before", at(0));
    let mut stage = Stage::new(&state);
    for n in 0..20 {
        let write = Write::Put { key: format!("{n}").into(), value: "v".into(), expect: Expect::Absent };
        stage.write(Transaction::new(vec![write]).unwrap(), at(0)).unwrap();
    }
    let batch = stage.finish(at(0));
    state.apply(&batch);
    assert_eq!(state.compacted(), Revision(2));
    assert_eq!(state.commits_after(Revision(2)).count(), 20);
}

#[test]
fn what_fails_in_a_group_leaves_no_trace() {
    let mut state = State::new(Retention::default());
    let put = |key: &str, expect| Write::Put { key: key.into(), value: "v".into(), expect };
    let mut stage = Stage::new(&state);
    let mut write = |writes: Vec<Write>| stage.write(Transaction::new(writes).unwrap(), at(0));
    assert_eq!(write(vec![put("a", Expect::Absent)]), Ok(Revision(2)));
    write(vec![put("b", Expect::Any), put("c", Expect::At(Revision(2)))]).unwrap_err();
    assert_eq!(write(vec![put("a", Expect::At(Revision(2)))]), Ok(Revision(3)), "sees the earlier write");
    assert_eq!(write(vec![put("b", Expect::Absent)]), Ok(Revision(4)), "the failed one took no revision");
    let batch = stage.finish(at(0));
    state.apply(&batch);
    assert_eq!(state.current.len(), 2);
}
