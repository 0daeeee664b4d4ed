//! `apps/v1` Deployment.

use horchestra_api::{Application, ApplicationPhase};
use horchestra_core::k8s_openapi::api::apps::v1::Deployment;
use horchestra_core::{Cluster, DesiredState, Result};
use serde_json::{Value, json};

use super::template::application;

/// How many replicas one Deployment may have here.
const MAX_REPLICAS: i64 = 500;

/// What should exist for a Deployment: as many Applications as it has replicas, named after it and
/// numbered from 0. A changed template changes all of them; each is replaced by its node.
///
/// # Errors
/// If the cluster cannot be read.
pub async fn deployment(deployment: &Deployment, cluster: &Cluster) -> Result<DesiredState> {
    let value = serde_json::to_value(deployment)?;
    let name = deployment.metadata.name.clone().unwrap_or_default();
    let generation = value.pointer("/metadata/generation").cloned().unwrap_or_default();
    let created = value.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
    let replicas =
        value.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1).clamp(0, MAX_REPLICAS);
    let template = value.pointer("/spec/template").cloned().unwrap_or_default();
    let spec = match application(&template) {
        Ok(spec) => Value::Object(spec),
        Err(refused) => {
            let refused = condition("Progressing", false, "Unsupported", &refused.to_string(), &created);
            return Ok(DesiredState::new()
                .status(json!({"observedGeneration": generation, "conditions": [refused]})));
        }
    };
    let metadata =
        |field: &str| template.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_else(|| json!({}));
    let mut desired = if replicas == 0 { DesiredState::nothing() } else { DesiredState::new() };
    let (mut exist, mut updated, mut ready) = (0, 0, 0);
    let mut since = created.clone();
    for number in 0..replicas {
        let name = format!("{name}-{number}");
        desired = desired.with_value(json!({
            "apiVersion": "orch.ks-tool.dev/v1",
            "kind": "Application",
            "metadata": {"name": name, "labels": metadata("labels"), "annotations": metadata("annotations")},
            "spec": spec,
        }));
        let Some(live) = cluster.get::<Application>(&name).await? else { continue };
        exist += 1;
        let status = live.status.unwrap_or_default();
        if status.observed_generation != live.metadata.generation {
            continue;
        }
        updated += 1;
        let says_ready = status.conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.status == "True");
        if status.phase == Some(ApplicationPhase::Running) && says_ready.unwrap_or(true) {
            ready += 1;
        }
        if let Some(started) = status.started_at {
            since = serde_json::to_value(started)?;
        }
    }
    let available = ready == replicas;
    let count = format!("{ready} of {replicas} replicas are available");
    let (reason, progress) = if available {
        ("NewReplicaSetAvailable", "all replicas are up to date")
    } else {
        ("ReplicaSetUpdated", count.as_str())
    };
    let minimum = if available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    Ok(desired.status(json!({
        "observedGeneration": generation,
        "replicas": exist,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": replicas - ready,
        "conditions": [
            condition("Available", available, minimum, &count, &since),
            condition("Progressing", true, reason, progress, &since),
        ],
    })))
}

fn condition(type_: &str, holds: bool, reason: &str, message: &str, time: &Value) -> Value {
    json!({
        "type": type_,
        "status": if holds { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
    })
}
