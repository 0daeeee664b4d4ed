//! The resource itself in the output of its flight: it stands for its status.

use horchestra_core::{Condition, DesiredState, Error, Manifest, Object, READY, ReleaseId, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The annotation, on the resource itself in an output, with what a status alone cannot say: what
/// the answer waits for, and which parts of the status are only conditions. Never written to a
/// cluster, and a host that does not know it loses nothing but that.
pub const ANNOTATION_ANSWER: &str = "horchestra.dev/answer";

/// The value of [`ANNOTATION_ANSWER`].
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Note {
    /// What the answer waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<String>,
    /// The types of conditions that were added to the answer, not to its status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<String>,
    /// The answer has no status of its own; the one here is what the resource had.
    #[serde(skip_serializing_if = "is_false")]
    unchanged: bool,
    /// The condition Ready here only repeats `waiting`, for hosts that do not know this note.
    #[serde(skip_serializing_if = "is_false")]
    derived: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The resource itself as its flight prints it; none if the answer says nothing about it.
pub(super) fn write(desired: &DesiredState, instance: &Object) -> Option<Value> {
    if desired.own_status().is_none() && desired.conditions().is_empty() && desired.waiting().is_empty() {
        return None;
    }
    let before = instance.to_value().get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut note = Note {
        waiting: desired.waiting().to_vec(),
        unchanged: desired.own_status().is_none(),
        ..Note::default()
    };
    let mut status = desired.own_status().unwrap_or(&before).clone();

    let mut added = desired.conditions().to_vec();
    note.conditions = added.iter().map(|c| c.type_.clone()).collect();
    let mut conditions = match status.remove("conditions") {
        Some(Value::Array(list)) if !note.unchanged => list,
        // Those that the resource has stay by themselves.
        _ => Vec::new(),
    };
    let is_ready = |v: &Value| v.get("type").and_then(Value::as_str) == Some(READY);
    if !note.waiting.is_empty() && !conditions.iter().any(is_ready) && !added.iter().any(|c| c.type_ == READY)
    {
        note.derived = true;
        added.push(Condition::ready(
            false,
            "InProgress",
            format!("waiting for: {}", note.waiting.join(", ")),
        ));
    }
    for condition in &added {
        conditions.retain(|v| v.get("type").and_then(Value::as_str) != Some(&condition.type_));
        conditions.push(with_time(condition, &before, instance));
    }
    if !conditions.is_empty() {
        status.insert("conditions".into(), Value::Array(conditions));
    }
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(&**instance.name()));
    if !instance.namespace().is_empty() {
        metadata.insert("namespace".into(), json!(&**instance.namespace()));
    }
    if note != Note::default() {
        let note = serde_json::to_string(&note).unwrap_or_default();
        metadata.insert("annotations".into(), json!({ ANNOTATION_ANSWER: note }));
    }
    Some(json!({
        "apiVersion": instance.api_version(),
        "kind": &*instance.group_kind().kind,
        "metadata": metadata,
        "status": status,
    }))
}

/// A condition with the time that Kubernetes' schema wants. A flight has no clock: it is the time
/// of the last change where the status stays the same, else the resource's creation. Our own hosts
/// replace it.
fn with_time(condition: &Condition, before: &Map<String, Value>, instance: &Object) -> Value {
    let old = before.get("conditions").and_then(Value::as_array).into_iter().flatten().find(|c| {
        let is = |field: &str, text: &str| c.get(field).and_then(Value::as_str) == Some(text);
        is("type", &condition.type_) && is("status", &condition.status)
    });
    let since =
        old.and_then(|c| c.get("lastTransitionTime")).and_then(Value::as_str).unwrap_or(instance.created());
    let mut value = json!(condition);
    if let Some(map) = value.as_object_mut().filter(|_| !since.is_empty()) {
        map.insert("lastTransitionTime".into(), since.into());
    }
    value
}

/// Whether a printed resource is the instance itself: the same group, kind, name and namespace. A
/// printed resource without a namespace is in the release's.
pub(super) fn is(manifest: &Manifest, instance: &Object) -> bool {
    let (printed, own) = (manifest.reference(), instance.reference());
    let namespace = match &*printed.namespace {
        "" => ReleaseId::of_instance(&own).namespace,
        _ => printed.namespace,
    };
    printed.kind == own.kind
        && printed.name == own.name
        && (own.namespace.is_empty() || namespace == own.namespace)
}

/// Adds what the printed resource itself says to an answer.
pub(super) fn read(desired: DesiredState, identity: &Manifest) -> Result<DesiredState> {
    let value = identity.value();
    let mut status = match value.get("status") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(_) => {
            return Err(Error::invalid(format!("{}: status", identity.reference()), "is not an object"));
        }
    };
    let note =
        value.pointer("/metadata/annotations").and_then(|a| a.get(ANNOTATION_ANSWER)).and_then(Value::as_str);
    let note: Note = match note {
        None => return Ok(desired.status(status)),
        Some(text) => serde_json::from_str(text).map_err(|e| {
            Error::invalid(format!("{}: metadata.annotations[{ANNOTATION_ANSWER}]", identity.reference()), e)
        })?,
    };
    let mut given = match status.remove("conditions") {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    };
    let mut take = |type_: &str| {
        let list = given.as_mut()?;
        let at = list.iter().position(|v| v.get("type").and_then(Value::as_str) == Some(type_))?;
        Some(list.remove(at))
    };
    if note.derived {
        take(READY);
    }
    let mut desired = note.waiting.into_iter().fold(desired, DesiredState::waiting_for);
    for type_ in &note.conditions {
        if let Some(condition) = take(type_) {
            let condition = serde_json::from_value(condition).map_err(|e| {
                Error::invalid(format!("{}: status.conditions[{type_}]", identity.reference()), e)
            })?;
            desired = desired.condition(condition);
        }
    }
    if note.unchanged {
        return Ok(desired);
    }
    if let Some(list) = given.filter(|list| !list.is_empty()) {
        status.insert("conditions".into(), Value::Array(list));
    }
    Ok(desired.status(status))
}
