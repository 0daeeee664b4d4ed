//! What one call came to.

use std::fmt;

use horchestra_core::{DesiredState, Extent, Object, ReadSet, Resource};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A desired state, and what was read to get to it.
///
/// For snapshots it has a stable text ([`to_yaml`](Self::to_yaml), [`to_json`](Self::to_json), `Serialize`) in
/// which the values of Secrets are masked.
#[derive(Clone)]
pub struct Evaluation {
    /// The resource it is about, as it was given to the reconciler.
    pub instance: Object,
    /// What should exist.
    pub desired: DesiredState,
    /// What was read.
    pub reads: ReadSet,
    /// What a module logged on stderr.
    pub log: String,
}

impl Evaluation {
    /// The wanted resource of this type and name.
    pub fn wants<T: Resource>(&self, name: &str) -> Option<T> {
        self.desired.find(name)
    }

    /// The names of all wanted resources, `Job one`, in order.
    pub fn wanted(&self) -> Vec<String> {
        self.desired.resources().map(|m| format!("{} {}", m.gvk().group_kind(), m.name())).collect()
    }

    /// The status of the resource as a type; none if the answer has none or it does not fit.
    pub fn status<S: DeserializeOwned>(&self) -> Option<S> {
        serde_json::from_value(Value::Object(self.desired.own_status()?.clone())).ok()
    }

    /// The field `message` of the status, empty if there is none.
    pub fn message(&self) -> &str {
        self.desired.own_status().and_then(|s| s.get("message")).and_then(Value::as_str).unwrap_or_default()
    }

    /// What the answer waits for.
    pub fn waiting(&self) -> &[String] {
        self.desired.waiting()
    }

    /// Everything as data, the values of Secrets masked.
    pub fn to_value(&self) -> Value {
        let mut all = Map::new();
        let mask_all = |stage: &Vec<_>| -> Vec<Value> { stage.iter().map(masked).collect() };
        match (self.desired.extent(), self.desired.stages()) {
            (Extent::Unsaid, _) => all.insert("resources".into(), "unchanged".into()),
            (_, []) => all.insert("resources".into(), json!([])),
            (_, [one]) => all.insert("resources".into(), mask_all(one).into()),
            (_, stages) => {
                all.insert("stages".into(), stages.iter().map(mask_all).collect::<Vec<_>>().into())
            }
        };
        if let Some(status) = self.desired.own_status() {
            all.insert("status".into(), Value::Object(status.clone()));
        }
        if !self.desired.conditions().is_empty() {
            all.insert("conditions".into(), json!(self.desired.conditions()));
        }
        if !self.desired.waiting().is_empty() {
            all.insert("waitingFor".into(), json!(self.desired.waiting()));
        }
        let missed: Vec<String> = self.reads.misses().map(ToString::to_string).collect();
        let found = self.reads.iter().map(|(read, _)| read.to_string()).filter(|read| !missed.contains(read));
        all.insert("found".into(), found.collect::<Vec<_>>().into());
        all.insert("missed".into(), missed.into());
        Value::Object(all)
    }

    /// As YAML.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(&self.to_value()).unwrap_or_default()
    }

    /// As indented JSON.
    pub fn to_json(&self) -> String {
        format!("{:#}", self.to_value())
    }
}

/// A wanted object, without what a Secret keeps.
fn masked(manifest: &horchestra_core::Manifest) -> Value {
    let mut value = manifest.value().clone();
    if manifest.gvk().group_kind().is("", "Secret") {
        for field in ["data", "stringData"] {
            for (_, secret) in value.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
                *secret = "(masked)".into();
            }
        }
    }
    value
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_yaml())
    }
}
