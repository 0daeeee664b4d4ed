//! What systemd says about a unit, in our words. Source: systemd.service(5), org.freedesktop.systemd1(5).

use std::time::Duration;

use jiff::Timestamp;
use zbus::zvariant::OwnedValue;

use super::manager::Properties;
use super::marks::Marks;
use crate::supervisor::{Exit, FailedWhy, UnitPhase, UnitState};

/// Codes by which systemd says that it could not execute the program. Source: systemd.exec(5),
/// "Process Exit Codes".
const NOT_EXECUTED: std::ops::RangeInclusive<i32> = 200..=243;
/// `CLD_EXITED` of waitid(2); the other values mean a signal.
const CLD_EXITED: i32 = 1;

struct Read<'p>(&'p Properties);

impl Read<'_> {
    fn value<T: TryFrom<OwnedValue>>(&self, name: &str) -> Option<T> {
        self.0.get(name).and_then(|v| v.try_clone().ok()).and_then(|v| T::try_from(v).ok())
    }

    fn text(&self, name: &str) -> String {
        self.value(name).unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.value::<i32>(name)
            .map(i64::from)
            .or_else(|| self.value::<u32>(name).map(i64::from))
            .or_else(|| self.value::<u64>(name).and_then(|n| i64::try_from(n).ok()))
            .unwrap_or(0)
    }

    /// A moment; 0 stands for never.
    fn time(&self, name: &str) -> Option<Timestamp> {
        let micros = self.number(name);
        (micros > 0).then(|| Timestamp::from_microsecond(micros).ok()).flatten()
    }
}

/// The state of a unit; none if it is not one of ours.
pub(super) fn state(properties: &Properties) -> Option<UnitState> {
    let read = Read(properties);
    let marks = Marks::of(&read.value::<Vec<Vec<u8>>>("LogExtraFields")?)?;
    let finished = read.time("ExecMainExitTimestamp");
    Some(UnitState {
        phase: phase(&read, finished)?,
        name: marks.name,
        revision: marks.revision,
        restarts: u32::try_from(read.number("NRestarts")).unwrap_or(0),
        started: read.time("ExecMainStartTimestamp"),
        last_exit: exit(&read, finished),
        finished,
    })
}

fn phase(read: &Read<'_>, finished: Option<Timestamp>) -> Option<UnitPhase> {
    let (active, sub) = (read.text("ActiveState"), read.text("SubState"));
    Some(match (active.as_str(), sub.as_str()) {
        ("activating", "auto-restart" | "auto-restart-queued") => {
            let wait =
                u64::try_from(read.number("RestartUSecNext").max(read.number("RestartUSec"))).unwrap_or(0);
            let from = finished.unwrap_or_default();
            UnitPhase::BackOff { until: from.saturating_add(Duration::from_micros(wait)).unwrap_or(from) }
        }
        ("activating" | "reloading", _) => UnitPhase::Starting,
        ("active", "exited") => UnitPhase::Succeeded,
        ("active", _) => UnitPhase::Running { pid: u32::try_from(read.number("MainPID")).unwrap_or(0) },
        ("deactivating", _) => UnitPhase::Stopping,
        ("failed", _) => UnitPhase::Failed {
            why: if read.text("Result") == "timeout" { FailedWhy::Deadline } else { FailedWhy::Retries },
        },
        ("inactive", _) => UnitPhase::Stopped,
        _ => return None,
    })
}

/// How it ended last.
fn exit(read: &Read<'_>, finished: Option<Timestamp>) -> Option<Exit> {
    finished?;
    let (code, status) = (read.number("ExecMainCode"), read.number("ExecMainStatus"));
    let status = i32::try_from(status).unwrap_or(i32::MAX);
    if code != i64::from(CLD_EXITED) {
        return Some(Exit::Signal(status));
    }
    // It was never active, so this is not the program's own code.
    if NOT_EXECUTED.contains(&status) && read.time("ActiveEnterTimestamp").is_none() {
        return Some(Exit::NotStarted(not_executed(status)));
    }
    Some(Exit::Code(status))
}

fn not_executed(status: i32) -> String {
    let what = match status {
        200 => "its working directory cannot be entered",
        203 => "the program cannot be executed; is it for this machine, and is its interpreter in the image?",
        216 => "its group is not known to this machine",
        217 => "its user is not known to this machine; is libnss-systemd installed?",
        226 => "its mounts or namespaces cannot be made",
        _ => "systemd could not prepare it",
    };
    format!("{what} (systemd's code {status})")
}

#[cfg(test)]
mod tests {
    use zbus::zvariant::Value;

    use super::*;

    fn properties(list: &[(&str, Value<'static>)]) -> Properties {
        let marks = [b"HORCHESTRA_UNIT=n_a".to_vec(), b"HORCHESTRA_REVISION=r1".to_vec()].to_vec();
        let own = [("LogExtraFields", Value::from(marks))];
        let all = own.iter().chain(list);
        all.map(|(name, value)| ((*name).to_owned(), value.try_to_owned().unwrap())).collect()
    }

    fn active(active: &'static str, sub: &'static str) -> [(&'static str, Value<'static>); 2] {
        [("ActiveState", Value::from(active)), ("SubState", Value::from(sub))]
    }

    #[test]
    fn a_running_unit() {
        let mut list = active("active", "running").to_vec();
        list.extend([
            ("MainPID", Value::from(42_u32)),
            ("NRestarts", Value::from(3_u32)),
            ("ExecMainStartTimestamp", Value::from(1_700_000_000_000_000_u64)),
        ]);
        let state = state(&properties(&list)).unwrap();
        assert_eq!(state.phase, UnitPhase::Running { pid: 42 });
        assert_eq!((state.name.as_str(), &*state.revision, state.restarts), ("n_a", "r1", 3));
        assert_eq!(state.started.unwrap().to_string(), "2023-11-14T22:13:20Z");
        assert_eq!(state.last_exit, None);
    }

    #[test]
    fn ends_are_told_apart() {
        let end = |active_since: u64, code: i32, status: i32| {
            let mut list = active("failed", "failed").to_vec();
            list.extend([
                ("ExecMainExitTimestamp", Value::from(5_u64)),
                ("ExecMainCode", Value::from(code)),
                ("ExecMainStatus", Value::from(status)),
                ("ActiveEnterTimestamp", Value::from(active_since)),
                ("Result", Value::from("exit-code")),
            ]);
            state(&properties(&list)).unwrap()
        };
        assert_eq!(end(1, 1, 3).last_exit, Some(Exit::Code(3)));
        assert_eq!(end(1, 1, 3).phase, UnitPhase::Failed { why: FailedWhy::Retries });
        assert_eq!(end(1, 2, 9).last_exit, Some(Exit::Signal(9)));
        assert_eq!(end(1, 1, 203).last_exit, Some(Exit::Code(203)), "the program's own");
        assert!(matches!(end(0, 1, 203).last_exit, Some(Exit::NotStarted(why)) if why.contains("executed")));
    }

    #[test]
    fn a_wait_has_its_end() {
        let mut list = active("activating", "auto-restart").to_vec();
        list.extend([
            ("ExecMainExitTimestamp", Value::from(10_000_000_u64)),
            ("RestartUSec", Value::from(5_000_000_u64)),
        ]);
        let until = Timestamp::from_second(15).unwrap();
        assert_eq!(state(&properties(&list)).unwrap().phase, UnitPhase::BackOff { until });
    }

    #[test]
    fn strangers_are_left_alone() {
        let mut stranger = properties(&active("active", "running"));
        stranger.remove("LogExtraFields");
        assert!(state(&stranger).is_none());
    }
}
