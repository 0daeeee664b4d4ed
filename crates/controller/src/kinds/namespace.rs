//! `v1` Namespace.

use serde_json::{Value, json};

use super::fields::{fill, get, list, object_at, text};
use super::strategy::Strategy;
use crate::name::NameRule;

/// The entry of `spec.finalizers` that is removed when a namespace is empty.
pub(crate) const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Rules of Namespaces. Emptying a deleted one is the collector's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Namespace;

impl Strategy for Namespace {
    fn prepare_create(&self, object: &mut Value) {
        let finalizers = list(object, &["spec", "finalizers"]);
        if !finalizers.iter().any(|f| f == FINALIZER) {
            let mut finalizers = finalizers.to_vec();
            finalizers.push(json!(FINALIZER));
            if let Some(spec) = object_at(object, &["spec"]) {
                spec.insert("finalizers".to_owned(), Value::Array(finalizers));
            }
        }
        if let Some(status) = object_at(object, &["status"]) {
            status.clear();
            fill(status, "phase", "Active");
        }
        label(object);
    }

    fn prepare_update(&self, old: &Value, new: &mut Value) {
        // Only the collector takes finalizers away, and it does not come this way.
        if let (Some(finalizers), Some(spec)) = (get(old, &["spec", "finalizers"]), object_at(new, &["spec"]))
        {
            spec.insert("finalizers".to_owned(), finalizers.clone());
        }
        label(new);
    }

    fn names(&self) -> NameRule {
        NameRule::Label
    }
}

fn label(object: &mut Value) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if let Some(labels) = object_at(object, &["metadata", "labels"]) {
        labels.insert(NAME_LABEL.to_owned(), json!(name));
    }
}
