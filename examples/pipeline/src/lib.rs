//! Example: three jobs one after the other, each only after the one before has succeeded.
//!
//! The same function is an operator natively and, compiled to WebAssembly, a flight.

use horchestra_flight::readiness::{Readiness, readiness};
use horchestra_flight::{Cluster, Condition, DesiredState, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use kube_core::ResourceExt;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a pipeline runs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "examples.com",
    version = "v1",
    kind = "Pipeline",
    plural = "pipelines",
    namespaced,
    status = "PipelineStatus",
    derive = "PartialEq",
    crates(kube_core = "kube_core"),
    doc = "Three jobs one after the other.",
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSpec {
    /// The image of all steps.
    pub image: String,
    /// What each step runs; the image's own command if not set. The step's name is in `$STEP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The step (`one`, `two` or `three`) that shall fail, to see what happens then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
}

/// How far a pipeline is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// What happens, or what has happened, for people.
    #[serde(default)]
    pub message: String,
    /// Conditions; `Ready` once all jobs have completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<v1::Condition>,
}

const STEPS: [&str; 3] = ["one", "two", "three"];

/// What should exist for a pipeline right now.
///
/// # Errors
/// If the cluster cannot be read.
pub async fn pipeline(pipeline: &Pipeline, cluster: &Cluster) -> Result<DesiredState> {
    let message = |text: String| PipelineStatus { message: text, ..PipelineStatus::default() };
    let mut desired = DesiredState::new();
    for step in STEPS {
        let name = format!("{}-{step}", pipeline.name_any());
        desired = desired.with_value(job(pipeline, &name, step));
        let live = cluster.get::<Job>(&name).await?;
        match live.map_or(Readiness::NotReady("it starts".into()), |job| readiness(&json!(job))) {
            Readiness::Ready => {}
            Readiness::NotReady(_) => {
                let desired = desired.status(message(format!("running job {name}")));
                return Ok(desired.waiting_for(format!("Job {name} to complete")));
            }
            Readiness::Failed(why) => {
                let desired = desired.status(message(format!("stopped at {name}: {why}")));
                return Ok(desired.condition(Condition::ready(false, "Failed", why)));
            }
        }
    }
    Ok(desired.status(message("all jobs have completed".into())))
}

/// The job of one step.
fn job(pipeline: &Pipeline, name: &str, step: &str) -> serde_json::Value {
    let spec = &pipeline.spec;
    let failing = || Some(["sh", "-c", "echo failing as asked >&2; exit 1"].map(String::from).to_vec());
    let command = if spec.fail.as_deref() == Some(step) { failing() } else { spec.command.clone() };
    let mut container =
        json!({"name": "step", "image": spec.image, "env": [{"name": "STEP", "value": step}]});
    if let Some(command) = command {
        container["command"] = json!(command);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    })
}

horchestra_flight::main!(pipeline);
