//! The Airway itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{GoDuration, ResourceMatcher};

/// Binds a kind, given by its definition, to the flight that reconciles its resources.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "yoke.cd",
    version = "v1alpha1",
    kind = "Airway",
    plural = "airways",
    status = "AirwayStatus",
    derive = "PartialEq",
    crates(kube_core = "kube_core"),
    doc = "Binds a kind, given by its definition, to the flight that reconciles its resources.",
    printcolumn = r#"{"name":"flight","type":"string","jsonPath":".spec.wasmUrls.flight"}"#,
    printcolumn = r#"{"name":"mode","type":"string","jsonPath":".spec.mode"}"#,
    printcolumn = r#"{"name":"cluster_access","type":"boolean","jsonPath":".spec.clusterAccess"}"#,
    printcolumn = r#"{"name":"fix_drift_interval","type":"string","jsonPath":".spec.fixDriftInterval"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AirwaySpec {
    /// Where the modules are.
    pub wasm_urls: WasmUrls,
    /// The definition of the kind: the spec of a CustomResourceDefinition.
    #[schemars(schema_with = "template_schema")]
    pub template: Value,
    /// The path of the value that the flight gets on stdin; empty for the whole resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_path: Vec<String>,
    /// When a resource is evaluated again.
    #[serde(default)]
    pub mode: Mode,
    /// Whether the flight may read the cluster.
    #[serde(default)]
    pub cluster_access: bool,
    /// Which objects outside its release it may read then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_access_matchers: Vec<ResourceMatcher>,
    /// How often a resource is evaluated although nothing changed; never if not set or zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_drift_interval: Option<GoDuration>,
    /// Whether resources are admitted without a trial evaluation.
    #[serde(default)]
    pub skip_admission_webhook: bool,
    /// How many revisions of a release are kept; 0 for the default of 2, negative for all.
    #[serde(default)]
    pub history_cap_size: i64,
    /// What is deleted instead of orphaned when it is no longer desired.
    #[serde(default)]
    pub prune: Prune,
    /// Whether registries may be reached without TLS or with certificates that cannot be verified.
    #[serde(default)]
    pub insecure: bool,
    /// How much memory the flight may have, in MiB; 0 for the host's default.
    #[serde(default)]
    pub max_memory_mib: u32,
    /// How long one evaluation may take; 10 s if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}

/// Where modules are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WasmUrls {
    /// The flight.
    pub flight: String,
    /// Its SHA-256 in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_checksum: Option<String>,
    /// The module that converts between versions of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converter: Option<String>,
    /// Its SHA-256 in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converter_checksum: Option<String>,
}

/// When a resource is evaluated again, besides changes of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Until everything is ready.
    #[default]
    Standard,
    /// As standard; others may not change what it created.
    Static,
    /// Whenever anything it created or read changes.
    Dynamic,
    /// Whenever anything it read changes.
    Subscription,
}

/// What is deleted instead of orphaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Prune {
    /// CustomResourceDefinitions, with all their resources.
    pub crds: bool,
    /// Namespaces, with everything in them.
    pub namespaces: bool,
}

/// How an Airway is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AirwayStatus {
    /// `Ready` says whether resources of the kind are reconciled.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The template is checked by what is made of it; here only what must be there.
fn template_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["group", "names", "scope", "versions"],
        "properties": {
            "group": {"type": "string"},
            "scope": {"type": "string", "enum": ["Cluster", "Namespaced"]},
            "names": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "required": ["plural", "kind"],
                "properties": {"plural": {"type": "string"}, "kind": {"type": "string"}},
            },
            "versions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        },
    })
}
