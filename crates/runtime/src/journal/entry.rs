//! One recorded run.

use std::sync::Arc;
use std::time::Duration;

use horchestra_core::{Answer, Error, GroupVersionKind, Kind, Object, Read, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One run of a reconciler: its inputs, what it read, and what came out. One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntry {
    /// When, as RFC 3339 text.
    pub time: String,
    /// What the reconciler is called.
    pub reconciler: String,
    /// What it takes to make the reconciler again, if it is not compiled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Value>,
    /// Why the run happened.
    pub causes: Vec<String>,
    /// The resource.
    pub resource: Value,
    /// What was read, in order, with the answers.
    pub reads: Vec<(Value, Value)>,
    /// The desired state, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Value>,
    /// The error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl JournalEntry {
    /// The recorded answer to a read.
    pub fn answer(&self, read: &Read) -> Result<Answer> {
        let wanted = read_to_json(read);
        match self.reads.iter().find(|(read, _)| *read == wanted) {
            Some((_, answer)) => answer_from_json(answer),
            None => Err(Error::terminal(format!("the recorded run never read {read}"))),
        }
    }
}

pub(super) fn read_to_json(read: &Read) -> Value {
    match read {
        Read::Get { kind, namespace, name } => {
            json!({"get": {"apiVersion": kind.api_version(), "kind": &*kind.kind, "namespace": &**namespace, "name": &**name}})
        }
        Read::List { kind, namespace, selector } => {
            json!({"list": {"apiVersion": kind.api_version(), "kind": &*kind.kind,
            "namespace": namespace.as_deref(), "selector": &**selector}})
        }
        Read::OlderThan { object, created, age } => {
            json!({"olderThan": {"object": object.to_string(), "created": &**created, "ageMs": millis(*age)}})
        }
        Read::Mapping { group, version, kind } => {
            json!({"mapping": {"group": &**group, "version": &**version, "kind": &**kind}})
        }
        other => json!({"other": other.to_string()}),
    }
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn answer_to_json(answer: &Answer) -> Value {
    match answer {
        Answer::Object(object) => json!({"object": object.as_ref().map(Object::to_value)}),
        Answer::Objects(objects) => {
            json!({"objects": objects.iter().map(Object::to_value).collect::<Vec<_>>()})
        }
        Answer::Flag(flag) => json!({"flag": flag}),
        Answer::Kind(kind) => json!({"kind": kind.as_ref().map(|k| json!({
            "apiVersion": k.gvk.api_version(), "kind": &*k.gvk.kind, "plural": &*k.plural, "namespaced": k.namespaced}))}),
        _ => Value::Null,
    }
}

fn answer_from_json(value: &Value) -> Result<Answer> {
    let broken = || Error::invalid("journal", "has an answer that cannot be read");
    let (what, value) = value.as_object().and_then(|m| m.iter().next()).ok_or_else(broken)?;
    match what.as_str() {
        "object" if value.is_null() => Ok(Answer::Object(None)),
        "object" => Object::from_value(value).map(|o| Answer::Object(Some(o))),
        "objects" => {
            let list = value.as_array().ok_or_else(broken)?;
            list.iter().map(Object::from_value).collect::<Result<_>>().map(Answer::Objects)
        }
        "flag" => value.as_bool().map(Answer::Flag).ok_or_else(broken),
        "kind" if value.is_null() => Ok(Answer::Kind(None)),
        "kind" => {
            let text = |f: &str| value.get(f).and_then(Value::as_str).ok_or_else(broken);
            let kind = Kind {
                gvk: GroupVersionKind::from_manifest(text("apiVersion")?, text("kind")?),
                plural: Arc::from(text("plural")?),
                namespaced: value.get("namespaced").and_then(Value::as_bool).ok_or_else(broken)?,
            };
            Ok(Answer::Kind(Some(kind)))
        }
        _ => Err(broken()),
    }
}
