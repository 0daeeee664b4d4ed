//! Events for people.

use horchestra_core::{GroupVersionKind, Kind, Object};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest message of an event; Kubernetes' events.k8s.io/v1 has the same limit.
const MAX_MESSAGE: usize = 1024;

/// An event for people, recorded beside an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether something is wrong.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// The message; cut after 1024 characters.
    pub message: String,
}

impl Note {
    /// The kind of [`event`](Self::event).
    pub fn event_kind() -> Kind {
        Kind { gvk: GroupVersionKind::new("", "v1", "Event"), plural: "events".into(), namespaced: true }
    }

    /// Where its event is kept: beside the object, or in `default` for objects of the cluster.
    pub fn namespace<'a>(&self, about: &'a Object) -> &'a str {
        if about.namespace().is_empty() { "default" } else { about.namespace() }
    }

    /// The name of its event. The same thing said again about the same object has the same name.
    pub fn event_name(&self, about: &Object) -> String {
        let digest = Sha256::new()
            .chain_update(about.uid())
            .chain_update([0])
            .chain_update(&self.reason)
            .chain_update([0])
            .chain_update(&self.message)
            .finalize();
        format!("{}.{}", about.name(), hex::encode(digest.get(..8).unwrap_or_default()))
    }

    /// As a `v1` Event: a new one, or the one that is there counted up.
    /// Source: Kubernetes API reference, "Event v1 core".
    pub fn event(&self, about: &Object, reporter: &str, now: &str, before: Option<&Value>) -> Value {
        let count = before
            .map_or(1, |event| event.get("count").and_then(Value::as_i64).unwrap_or(1).saturating_add(1));
        let first = before.and_then(|event| event.get("firstTimestamp")).and_then(Value::as_str);
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.event_name(about), "namespace": self.namespace(about)},
            "involvedObject": {
                "apiVersion": about.api_version(),
                "kind": &*about.group_kind().kind,
                "name": &**about.name(),
                "namespace": &**about.namespace(),
                "uid": about.uid(),
                "resourceVersion": about.resource_version(),
            },
            "reason": self.reason,
            "message": self.message.chars().take(MAX_MESSAGE).collect::<String>(),
            "type": if self.warning { "Warning" } else { "Normal" },
            "source": {"component": reporter},
            "reportingComponent": reporter,
            "reportingInstance": "",
            "firstTimestamp": first.unwrap_or(now),
            "lastTimestamp": now,
            "count": count,
        })
    }
}
