//! What the status of a resource says: the truth about its last run.

use horchestra_core::plan::Plan;
use horchestra_core::{Condition, DesiredState, Error, Object, READY, merge_conditions};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::cache::Key;
use crate::controller::Controller;
use crate::inner::Inner;
use crate::{Note, Target, TargetError};

/// How often a status is written again after somebody else wrote at the same time.
const ATTEMPTS: usize = 5;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything is there and ready.
    Ready,
    /// It waits for this.
    Waiting(String),
    /// An owned object has failed for good.
    Failed(String),
    /// The run failed.
    Error(String),
    /// It is being deleted and waits for this.
    Terminating(String),
}

impl Verdict {
    pub(crate) fn of(plan: &Plan, desired: &DesiredState) -> Self {
        if !plan.failed.is_empty() {
            Self::Failed(plan.failed.join("; "))
        } else if !plan.waiting.is_empty() {
            Self::Waiting(format!("waiting for: {}", plan.waiting.join("; ")))
        } else if !plan.is_empty() || plan.held {
            Self::Waiting("waiting for flight to become ready".into())
        } else {
            let _ = desired;
            Self::Ready
        }
    }

    fn condition(&self) -> Condition {
        match self {
            Self::Ready => Condition::ready(true, "Ready", "Successfully deployed"),
            Self::Waiting(what) => Condition::ready(false, "InProgress", what.as_str()),
            Self::Failed(what) | Self::Error(what) => Condition::ready(false, "Error", what.as_str()),
            Self::Terminating(what) => Condition::ready(false, "Terminating", format!("waiting for {what}")),
        }
    }
}

/// Writes the status of a resource if it is not what it should be. What the last run found out is
/// kept even if the resource was changed meanwhile, except that a newer generation has the last word.
pub(crate) async fn write(
    inner: &Inner,
    controller: &Controller,
    key: &Key,
    desired: Option<&DesiredState>,
    verdict: &Verdict,
) -> Result<(), Error> {
    let Some(first) = controller.instance(key) else { return Ok(()) };
    let mut live = first.clone();
    remember(inner, controller, key, &live, desired, verdict);
    for _ in 0..ATTEMPTS {
        if live.generation() != first.generation() || live.uid() != first.uid() {
            return Ok(());
        }
        let before = live.status();
        let status = compose(controller, &live, &before, desired, verdict);
        if status == before {
            return Ok(());
        }
        let manager = &controller.options().plan.manager;
        match inner.target().set_status(&live, controller.kind(), status, manager).await {
            Ok(stored) => {
                inner.metrics.wrote(controller.name());
                inner.absorb(&stored, &controller.subscriber(key));
                return Ok(());
            }
            Err(TargetError::NotFound(_)) => return Ok(()),
            Err(TargetError::Conflict(_)) => {
                let kind = controller.kind();
                let fresh = inner.target().get(kind, &key.0, &key.1).await;
                match fresh.map_err(|e| e.into_error("cannot read the resource again for its status"))? {
                    Some(fresh) => live = fresh,
                    None => return Ok(()),
                }
            }
            Err(e) => return Err(e.into_error("cannot write the status")),
        }
    }
    Err(Error::transient("the status changes too fast to be written; trying again later"))
}

fn compose(
    controller: &Controller,
    live: &Object,
    before: &Map<String, Value>,
    desired: Option<&DesiredState>,
    verdict: &Verdict,
) -> Map<String, Value> {
    let own = desired.and_then(DesiredState::own_status);
    let mut status = own.cloned().unwrap_or_else(|| before.clone());
    let stated = own.and_then(|s| s.get("conditions")).and_then(Value::as_array).cloned();
    let mut conditions: Vec<Condition> = desired.map(|d| d.conditions().to_vec()).unwrap_or_default();
    if controller.options().ready_condition {
        let says_ready = conditions.iter().any(|c| c.type_ == READY)
            || stated.iter().flatten().any(|c| c.get("type").and_then(Value::as_str) == Some(READY));
        if !says_ready {
            conditions.push(verdict.condition());
        }
    } else if conditions.is_empty() {
        // A status in a shape of its own: its conditions are written as the reconciler gave them.
        return status;
    }
    let live_conditions = before.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    if own.is_none() {
        status.remove("conditions");
    }
    merge_conditions(
        &mut status,
        &live_conditions,
        &conditions,
        live.generation(),
        &Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    status
}

/// Remembers the verdict, and records an event when it is another one than last time.
fn remember(
    inner: &Inner,
    controller: &Controller,
    key: &Key,
    live: &Object,
    desired: Option<&DesiredState>,
    verdict: &Verdict,
) {
    let condition = desired
        .and_then(|d| d.conditions().iter().find(|c| c.type_ == READY).cloned())
        .unwrap_or_else(|| verdict.condition());
    let mut memory = controller.memory(key);
    memory.ready = condition.status == "True";
    let news = (condition.reason.clone(), condition.message.clone());
    let repeated = memory.noted.as_ref() == Some(&news);
    memory.noted = Some(news);
    controller.remember(key, Some(memory));
    if repeated || !controller.options().ready_condition {
        return;
    }
    let warning = matches!(verdict, Verdict::Error(_) | Verdict::Failed(_));
    inner.note(live.clone(), Note { warning, reason: condition.reason, message: condition.message });
}
