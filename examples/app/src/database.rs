//! Databases, and a provider that plays the part of Crossplane or of a database operator.

use horchestra_flight::{Cluster, DesiredState, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use kube_core::ResourceExt;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What database is wanted.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "examples.com",
    version = "v1",
    kind = "Database",
    plural = "databases",
    namespaced,
    status = "DatabaseStatus",
    derive = "PartialEq",
    crates(kube_core = "kube_core"),
    doc = "A database that somebody provides.",
    printcolumn = r#"{"name":"Engine","type":"string","jsonPath":".spec.engine"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// Which engine: `postgres`.
    pub engine: String,
}

/// How far a database is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// What happens, or what has happened, for people.
    #[serde(default)]
    pub message: String,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<v1::Condition>,
}

/// The name of the Secret with the connection data of a database.
pub fn connection_of(database: &str) -> String {
    format!("{database}-connection")
}

/// Provides a database: here only the Secret, in earnest also a server.
///
/// A reconciler has no randomness, so the password is the resource's uid, which the API server has made up.
///
/// # Errors
/// None of its own.
pub async fn provider(database: &Database, _: &Cluster) -> Result<DesiredState> {
    let name = database.name_any();
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": connection_of(&name)},
        "stringData": {
            "host": format!("{name}.{}.example", database.namespace().unwrap_or_default()),
            "engine": database.spec.engine,
            "user": name,
            "password": database.uid().unwrap_or_default(),
        },
    });
    let status = DatabaseStatus { message: "provided".into(), ..DatabaseStatus::default() };
    Ok(DesiredState::new().with_value(secret).status(status))
}
