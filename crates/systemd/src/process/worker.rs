use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::backoff::BackOff;
use super::child::{Child, Places};
use super::launcher::{self, RunDirs};
use crate::log::LogWriter;
use crate::supervisor::{Capabilities, Exit, FailedWhy, UnitPhase, UnitState};
use crate::unit::{Restart, Root};
use crate::{Result, Unit};

/// Keeps one unit: starts it, waits, decides whether and when to start it again.
pub(super) struct Worker {
    pub unit: Arc<Unit>,
    pub capabilities: Capabilities,
    pub launcher: PathBuf,
    pub records: PathBuf,
    pub dir: PathBuf,
    pub log: LogWriter,
    pub back_off: BackOff,
    pub state: watch::Sender<UnitState>,
    pub changes: broadcast::Sender<UnitState>,
    pub stop: watch::Receiver<bool>,
}

/// What ended a wait.
enum Woken {
    Exited(Exit),
    Stop,
    Deadline,
    Waited,
}

impl Worker {
    pub(super) async fn run(mut self) {
        let deadline = self.unit.deadline.map(|d| Instant::now() + d);
        let mut last_wait = None;
        let mut failures = 0u32;
        loop {
            let begin = Instant::now();
            let exit = match self.start().await {
                Err(e) => Exit::NotStarted(e.to_string()),
                Ok(mut child) => {
                    let pid = child.pid;
                    self.set(|s| {
                        s.started = Some(Timestamp::now());
                        s.phase = UnitPhase::Running { pid };
                    });
                    match self.wait(Some(&mut child), deadline).await {
                        Woken::Exited(exit) => exit,
                        Woken::Stop | Woken::Waited => {
                            self.set(|s| s.phase = UnitPhase::Stopping);
                            let exit = child.terminate(self.unit.stop_signal, self.unit.grace).await;
                            return self.end(Some(exit), UnitPhase::Stopped);
                        }
                        Woken::Deadline => {
                            let exit = child.terminate(self.unit.stop_signal, self.unit.grace).await;
                            return self.end(Some(exit), UnitPhase::Failed { why: FailedWhy::Deadline });
                        }
                    }
                }
            };
            if !exit.success() {
                failures = failures.saturating_add(1);
            }
            let again = match self.unit.restart {
                Restart::Always => true,
                Restart::OnFailure { .. } if exit.success() => {
                    return self.end(Some(exit), UnitPhase::Succeeded);
                }
                Restart::OnFailure { retries } => retries.is_none_or(|r| failures <= r),
            };
            if !again {
                return self.end(Some(exit), UnitPhase::Failed { why: FailedWhy::Retries });
            }
            let wait = self.back_off.next(last_wait, begin.elapsed());
            last_wait = Some(wait);
            let now = Timestamp::now();
            let until =
                SignedDuration::try_from(wait).ok().and_then(|w| now.checked_add(w).ok()).unwrap_or(now);
            self.set(|s| {
                s.finished = Some(now);
                s.last_exit = Some(exit);
                s.phase = UnitPhase::BackOff { until };
            });
            let due = Instant::now() + wait;
            match self.pause(due, deadline).await {
                Woken::Stop => return self.end(None, UnitPhase::Stopped),
                Woken::Deadline => return self.end(None, UnitPhase::Failed { why: FailedWhy::Deadline }),
                Woken::Exited(_) | Woken::Waited => self.set(|s| {
                    s.restarts = s.restarts.saturating_add(1);
                    s.phase = UnitPhase::Starting;
                }),
            }
        }
    }

    async fn start(&self) -> Result<Child> {
        let dirs = RunDirs::below(&self.dir);
        let spec =
            launcher::spec(&self.unit, &self.capabilities.isolation, self.capabilities.shared_roots, &dirs)?;
        let places = Places {
            launcher: self.launcher.clone(),
            records: self.records.clone(),
            errors: self.dir.join("error"),
        };
        let (unit, log) = (self.unit.clone(), self.log.clone());
        let work = move || {
            if matches!(unit.root, Root::Shared(_)) {
                dirs.prepare()?;
            }
            Child::start(&unit.name, &spec, &places, &log)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(e) => Err(crate::Error::io("starting a unit", std::io::Error::other(e))),
        }
    }

    async fn wait(&mut self, child: Option<&mut Child>, deadline: Option<Instant>) -> Woken {
        let exited = async {
            match child {
                Some(child) => child.exited().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An exit that has happened counts, whatever else has.
            biased;
            exit = exited => Woken::Exited(exit),
            () = stopped(&mut self.stop) => Woken::Stop,
            () = at(deadline) => Woken::Deadline,
        }
    }

    async fn pause(&mut self, due: Instant, deadline: Option<Instant>) -> Woken {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Woken::Stop,
            () = at(deadline) => Woken::Deadline,
            () = tokio::time::sleep_until(due) => Woken::Waited,
        }
    }

    fn set(&self, change: impl FnOnce(&mut UnitState)) {
        self.state.send_modify(change);
        // Nobody listening is fine.
        let _ = self.changes.send(self.state.borrow().clone());
    }

    fn end(&self, exit: Option<Exit>, phase: UnitPhase) {
        self.set(|s| {
            if exit.is_some() {
                s.finished = Some(Timestamp::now());
                s.last_exit = exit;
            }
            s.phase = phase;
        });
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A supervisor that is gone cannot keep units either.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending::<()>().await,
    }
}

/// The longest stop that is waited for beyond a unit's own grace.
pub(super) const KILL_MARGIN: Duration = Duration::from_secs(10);
