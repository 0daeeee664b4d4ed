use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ResourceAmounts;
use crate::orch::{any_objects_schema, conditions_schema};

/// A Linux machine that runs applications.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orch.ks-tool.dev",
    version = "v1",
    kind = "Node",
    status = "NodeStatus",
    shortname = "no",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"boolean","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"CPU","type":"string","jsonPath":".status.capacity.cpu"}"#,
    printcolumn = r#"{"name":"Memory","type":"string","jsonPath":".status.capacity.memory"}"#,
    printcolumn = r#"{"name":"IP","type":"string","jsonPath":".status.ip"}"#,
    printcolumn = r#"{"name":"OS","type":"string","jsonPath":".status.os","priority":1}"#,
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
pub struct NodeSpec {
    /// Takes no new applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unschedulable: Option<bool>,
    /// What applications must bear to be here, in Kubernetes' form (`core/v1` Taint).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_objects_schema")]
    pub taints: Vec<Map<String, Value>>,
}

/// What a node is and has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ResourceAmounts>,
    /// What is set aside for the applications here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<ResourceAmounts>,
    /// Distribution, kernel and architecture, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Who runs units here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<String>,
    /// What cannot be done here, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limitations: Vec<String>,
    /// Whether it takes care of its applications.
    #[serde(default)]
    pub ready: bool,
    /// When it was heard of last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Time>,
    /// Aspects of its state; `Ready` among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
