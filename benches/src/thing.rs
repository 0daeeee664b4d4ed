//! A resource to reconcile.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Thing", namespaced, status = "ThingStatus")]
#[kube(crates(kube_core = "kube_core"))]
pub struct ThingSpec {
    pub image: String,
    pub size: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThingStatus {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub conditions: Vec<Value>,
}

/// As an API server stores it once it has been reconciled: nothing is left to do.
pub fn stored(index: usize) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": format!("thing-{index:06}"),
            "namespace": format!("team-{}", index % 50),
            "uid": format!("00000000-0000-4000-8000-{index:012}"),
            "resourceVersion": (index + 1).to_string(),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app.kubernetes.io/name": "thing", "tier": "backend"},
            "managedFields": [
                {"manager": "kubectl", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
                 "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}, "f:tier": {}}},
                    "f:spec": {"f:image": {}, "f:size": {}}}},
                {"manager": "horchestra", "operation": "Update", "apiVersion": "example.com/v1", "subresource": "status",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:message": {}, "f:conditions": {}}}},
            ],
        },
        "spec": {"image": "registry.example.com/team/thing:v1.2.3", "size": index % 100},
        "status": {
            "message": "everything is as it should be",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "Successfully deployed",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}],
        },
    })
}
