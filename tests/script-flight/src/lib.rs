//! A flight for tests: its resource says what should exist, where to look, and what to report.

mod reference;

use horchestra_flight::{Cluster, DesiredState, Result};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a script says.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Script {
    /// What should exist. `{"$ref": ...}` anywhere in it stands for something of the cluster.
    pub resources: Vec<Value>,
    /// The status of the resource itself, with references as well.
    pub status: Option<Value>,
    /// Whether to never come to an end.
    pub endless: bool,
}

/// A resource of a namespace that is a script.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "examples.com", version = "v1", kind = "Backend", namespaced)]
#[kube(crates(kube_core = "kube_core"))]
pub struct BackendSpec {
    /// The script.
    #[serde(flatten)]
    pub script: Script,
}

/// A resource of the cluster that is a script.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "examples.com", version = "v1", kind = "ClusterBackend")]
#[kube(crates(kube_core = "kube_core"))]
pub struct ClusterBackendSpec {
    /// The script.
    #[serde(flatten)]
    pub script: Script,
}

/// Does what the script says.
pub async fn backend(backend: &Backend, cluster: &Cluster) -> Result<DesiredState> {
    play(&backend.spec.script, cluster).await
}

/// Does what the script says.
pub async fn cluster_backend(backend: &ClusterBackend, cluster: &Cluster) -> Result<DesiredState> {
    play(&backend.spec.script, cluster).await
}

async fn play(script: &Script, cluster: &Cluster) -> Result<DesiredState> {
    if script.endless {
        loop {
            std::hint::spin_loop();
        }
    }
    let mut desired = DesiredState::new();
    for resource in &script.resources {
        desired = desired.with_value(reference::resolve(resource, cluster).await?);
    }
    Ok(match &script.status {
        Some(status) => desired.status(reference::resolve(status, cluster).await?),
        None => desired,
    })
}

horchestra_flight::main!(backend, cluster_backend);
