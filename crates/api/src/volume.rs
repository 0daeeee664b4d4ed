use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::orch::quantity_schema;

/// A directory of a node that outlives the applications that use it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orch.ks-tool.dev",
    version = "v1",
    kind = "PersistentVolume",
    plural = "persistentvolumes",
    namespaced,
    status = "PersistentVolumeStatus",
    shortname = "pv",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Size","type":"string","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Node","type":"string","jsonPath":".spec.node"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        schemars = "::schemars",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// How much it is meant to hold.
    #[schemars(schema_with = "quantity_schema")]
    pub size: Quantity,
    /// The node it is on. That of its first application where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Permission bits as octal digits, set when it is made. 0755 where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-7]{3,4}$"))]
    pub mode: Option<String>,
    /// What happens to the data when the volume is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
    /// Whether several applications may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
}

/// What happens to the data of a deleted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimPolicy {
    /// It is deleted too.
    #[default]
    Delete,
    /// It stays on the node.
    Retain,
}

/// What a volume is, as its node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<VolumePhase>,
    /// Why, as one CamelCase word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Where a volume stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumePhase {
    /// Not made yet.
    Pending,
    /// There.
    Available,
    /// In use.
    Bound,
    /// It cannot be made or removed.
    Failed,
}
