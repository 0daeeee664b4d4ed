//! Example: an application that asks for a database, waits for the Secret with its connection data
//! that somebody else creates, and only then deploys.

mod database;

use horchestra_flight::readiness::{Readiness, readiness};
use horchestra_flight::{Cluster, DesiredState, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use kube_core::ResourceExt;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::database::{Database, DatabaseSpec, DatabaseStatus, connection_of, provider};

/// What an application is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "examples.com",
    version = "v1",
    kind = "App",
    plural = "apps",
    namespaced,
    status = "AppStatus",
    derive = "PartialEq",
    crates(kube_core = "kube_core"),
    doc = "An application with a database.",
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AppSpec {
    /// The image to run.
    pub image: String,
    /// What it runs; the image's own command if not set. The connection data are files below
    /// `/run/connection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// How many of it.
    #[serde(default = "one")]
    pub replicas: u16,
}

fn one() -> u16 {
    1
}

/// How far an application is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppStatus {
    /// What happens, or what has happened, for people.
    #[serde(default)]
    pub message: String,
    /// Conditions; `Ready` once it is deployed and answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<v1::Condition>,
}

/// What should exist for an application right now.
///
/// # Errors
/// If the cluster cannot be read.
pub async fn app(app: &App, cluster: &Cluster) -> Result<DesiredState> {
    let message = |text: String| AppStatus { message: text, ..AppStatus::default() };
    let name = app.name_any();
    let desired = DesiredState::new().with(&Database::new(&name, DatabaseSpec { engine: "postgres".into() }));

    // Not ours: whoever serves databases here creates it when the database is up.
    let secret = connection_of(&name);
    let Some(connection) = cluster.get::<Secret>(&secret).await? else {
        let desired = desired.status(message(format!("waiting for Secret {secret}")));
        return Ok(desired.waiting_for(format!("Secret {secret}")));
    };

    let desired = desired.with_value(deployment(app, &connection));
    let live = cluster.get::<Deployment>(&name).await?;
    Ok(match live.map(|live| readiness(&json!(live))) {
        Some(Readiness::Ready) => desired.status(message("deployed and ready".into())),
        Some(Readiness::Failed(why)) => desired.status(message(format!("cannot be deployed: {why}"))),
        _ => {
            desired.status(message("deploying".into())).waiting_for(format!("Deployment {name} to be ready"))
        }
    })
}

/// The deployment, with the connection data as files.
fn deployment(app: &App, connection: &Secret) -> serde_json::Value {
    let name = app.name_any();
    let mut container = json!({
        "name": "app",
        "image": app.spec.image,
        "volumeMounts": [{"name": "connection", "mountPath": "/run/connection", "readOnly": true}],
    });
    if let Some(command) = &app.spec.command {
        container["command"] = json!(command);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": app.spec.replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {
                    "labels": {"app": name},
                    // Other connection data is another template, so the pods follow it.
                    "annotations": {"examples.com/connection": connection.resource_version().unwrap_or_default()},
                },
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "connection", "secret": {"secretName": connection.name_any()}}],
                },
            },
        },
    })
}

// One module for both kinds: it calls the function for the kind of resource it is given.
horchestra_flight::main!(app, provider);
