//! Conditions: what a status says about its resource, as Kubernetes' `metav1.Condition`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One aspect of a resource's state.
///
/// When it last changed is filled in by whoever writes it: a reconciler has no clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, in CamelCase; one condition of each type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, as one CamelCase word for programs.
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
}

/// The condition that says whether a resource is as it should be.
pub const READY: &str = "Ready";

impl Condition {
    /// A condition that holds or does not.
    pub fn new(type_: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_: type_.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// The condition `Ready`.
    pub fn ready(holds: bool, reason: &str, message: impl Into<String>) -> Self {
        Self::new(READY, holds, reason, message)
    }
}

/// Puts conditions into a status that may have some: by type, keeping the time of the last change
/// where the status of a condition stays the same. `now` is RFC 3339 text.
pub fn merge_conditions(
    status: &mut Map<String, Value>,
    live: &[Value],
    new: &[Condition],
    generation: i64,
    now: &str,
) {
    let type_of = |v: &Value| v.get("type").and_then(Value::as_str).map(str::to_owned);
    let given = match status.remove("conditions") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    // What the reconciler put into its status counts as its own condition.
    let mut wanted: Vec<Value> = given.into_iter().filter(|v| type_of(v).is_some()).collect();
    for condition in new {
        wanted.retain(|v| type_of(v).as_deref() != Some(&condition.type_));
        wanted.push(serde_json::to_value(condition).unwrap_or_default());
    }
    let mut merged: Vec<Value> = Vec::new();
    for old in live {
        let Some(type_) = type_of(old) else { continue };
        if !wanted.iter().any(|v| type_of(v).as_deref() == Some(&type_)) {
            merged.push(old.clone());
        }
    }
    for mut condition in wanted {
        let before = live.iter().find(|v| type_of(v) == type_of(&condition));
        let Some(map) = condition.as_object_mut() else { continue };
        let same = before.is_some_and(|b| b.get("status") == map.get("status"));
        let since = before.and_then(|b| b.get("lastTransitionTime")).filter(|_| same).cloned();
        map.insert("lastTransitionTime".into(), since.unwrap_or_else(|| now.into()));
        map.insert("observedGeneration".into(), generation.into());
        for (field, default) in [("reason", "Reconciled"), ("message", "")] {
            map.entry(field).or_insert_with(|| default.into());
        }
        merged.push(condition);
    }
    merged.sort_by_key(type_of);
    status.insert("conditions".into(), Value::Array(merged));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn time_moves_only_with_the_status() {
        let live = vec![
            json!({"type": "Ready", "status": "False", "reason": "InProgress", "message": "a", "lastTransitionTime": "t0"}),
            json!({"type": "Theirs", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "t0"}),
        ];
        let mut status = Map::new();
        merge_conditions(&mut status, &live, &[Condition::ready(false, "InProgress", "b")], 2, "t1");
        assert_eq!(
            status["conditions"],
            json!([
                {"type": "Ready", "status": "False", "reason": "InProgress", "message": "b", "lastTransitionTime": "t0", "observedGeneration": 2},
                {"type": "Theirs", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "t0"}
            ])
        );
        let mut status = Map::new();
        merge_conditions(&mut status, &live, &[Condition::ready(true, "Ready", "done")], 3, "t1");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "t1");
    }
}
