//! From an Application to its unit, and from the unit back to the Application's status.

use std::collections::BTreeMap;

use async_trait::async_trait;
use horchestra_api::{Application, ApplicationPhase};
use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use horchestra_core::{Cluster, DesiredState, GroupVersionKind, Kind, Object, Reconciler, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The group of units. They are served by this process alone.
pub(crate) const GROUP: &str = "node.horchestra.dev";

/// The kind of units.
pub(crate) fn unit_kind() -> Kind {
    Kind { gvk: GroupVersionKind::new(GROUP, "v1", "Unit"), plural: "units".into(), namespaced: true }
}

/// What a unit is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnitSpec {
    /// The Application.
    pub(crate) application: horchestra_api::ApplicationSpec,
    /// The contents of the Secrets that it names: object, key, bytes in base64.
    pub(crate) secrets: BTreeMap<String, BTreeMap<String, String>>,
    /// The contents of the ConfigMaps that it names.
    pub(crate) config_maps: BTreeMap<String, BTreeMap<String, String>>,
}

/// Reconciles the Applications of one node.
#[derive(Debug)]
pub(crate) struct ApplicationReconciler {
    /// The node's name.
    pub(crate) node: String,
}

#[async_trait]
impl Reconciler for ApplicationReconciler {
    type Resource = Application;

    async fn reconcile(&self, app: &Application, cluster: &Cluster) -> Result<DesiredState> {
        if app.spec.node_name.as_ref().is_some_and(|n| *n != self.node) {
            return Ok(DesiredState::nothing());
        }
        let name = app.metadata.name.clone().unwrap_or_default();
        let status = app.status.clone().unwrap_or_default();
        let seen = status.observed_generation == app.metadata.generation;
        if seen && status.phase.is_some_and(ApplicationPhase::is_final) {
            // What has ended is not run again; its unit stays for its log.
            return Ok(DesiredState::new().status(serde_json::to_value(status)?));
        }
        let pending = |reason: &str, message: String| {
            self.status(app, json!({"phase": "Pending", "reason": reason, "message": message}))
        };
        if let Some(field) = unsupported(app) {
            let message = format!("spec.{field} is not supported by this node yet; leave it out");
            return Ok(DesiredState::new().status(pending("Unsupported", message)));
        }
        let (secrets, config_maps) = match contents(app, cluster).await? {
            Ok(found) => found,
            Err(missing) => {
                let message = format!("waiting for {missing}");
                return Ok(DesiredState::new()
                    .status(pending("ObjectMissing", message))
                    .waiting_for(missing));
            }
        };
        let spec = UnitSpec { application: app.spec.clone(), secrets, config_maps };
        let unit = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "Unit",
            "metadata": {"name": name},
            "spec": spec,
        });
        let live = cluster.get_object(&unit_kind(), &name).await?;
        // The state of what was wanted before says nothing about what is wanted now.
        let state = live
            .as_ref()
            .map(Object::to_value)
            .filter(|live| live.get("spec") == unit.get("spec"))
            .and_then(|live| live.get("status").cloned());
        let status = match state {
            Some(state) => self.status(app, state),
            None => pending("Accepted", "the node has taken it on".into()),
        };
        Ok(DesiredState::new().with_value(unit).status(status))
    }
}

impl ApplicationReconciler {
    /// A unit's state as the status of its Application.
    fn status(&self, app: &Application, mut state: Value) -> Value {
        let running =
            state.get("phase").and_then(Value::as_str) == Some("Running") && state.get("reason").is_none();
        let text = |f: &str| state.get(f).and_then(Value::as_str).map(str::to_owned);
        let phase = text("phase").unwrap_or_default();
        let since =
            text("startedAt").or_else(|| app.metadata.creation_timestamp.as_ref().map(|t| t.0.to_string()));
        let ready = json!({
            "type": "Ready",
            "status": if running { "True" } else { "False" },
            "reason": text("reason").unwrap_or_else(|| phase.clone()),
            "message": text("message").unwrap_or_default(),
            "lastTransitionTime": since,
        });
        state["node"] = self.node.clone().into();
        state["observedGeneration"] = app.metadata.generation.into();
        state["conditions"] = json!([ready]);
        state
    }
}

/// A field that is part of Applications and that this node cannot do.
fn unsupported(app: &Application) -> Option<&'static str> {
    let spec = &app.spec;
    let probes = [
        ("livenessProbe", spec.liveness_probe.is_some()),
        ("readinessProbe", spec.readiness_probe.is_some()),
        ("startupProbe", spec.startup_probe.is_some()),
    ];
    let volumes = spec.volume_mounts.iter().any(|m| m.pv.is_some());
    let sub_paths = spec.volume_mounts.iter().any(|m| m.sub_path.is_some());
    let others = [("volumeMounts[].pv", volumes), ("volumeMounts[].subPath", sub_paths)];
    probes.into_iter().chain(others).find(|(_, used)| *used).map(|(field, _)| field)
}

type Contents = BTreeMap<String, BTreeMap<String, String>>;

/// Everything that the Application takes from other objects, or the first of them that is missing.
async fn contents(
    app: &Application,
    cluster: &Cluster,
) -> Result<std::result::Result<(Contents, Contents), String>> {
    let spec = &app.spec;
    let (mut secrets, mut config_maps) = (Contents::new(), Contents::new());
    let mounts = spec.volume_mounts.iter();
    let from = spec.env_from.iter();
    let names = |o: &horchestra_api::ObjectName| (o.name.clone(), o.optional.unwrap_or(false));
    let wanted_secrets: Vec<(String, bool)> = mounts
        .clone()
        .filter_map(|m| m.secret.as_ref().map(names))
        .chain(from.clone().filter_map(|f| f.secret_ref.as_ref().map(names)))
        .chain(spec.secret_env.values().map(|k| (k.name.clone(), k.optional.unwrap_or(false))))
        .collect();
    let wanted_maps: Vec<(String, bool)> = mounts
        .filter_map(|m| m.config_map.as_ref().map(names))
        .chain(from.filter_map(|f| f.config_map_ref.as_ref().map(names)))
        .collect();
    for (name, optional) in wanted_secrets {
        match cluster.get::<Secret>(&name).await? {
            Some(secret) => {
                let data = serde_json::to_value(secret.data.unwrap_or_default())?;
                secrets.insert(name, serde_json::from_value(data)?);
            }
            None if optional => {}
            None => return Ok(Err(format!("Secret {name}"))),
        }
    }
    for (name, optional) in wanted_maps {
        match cluster.get::<ConfigMap>(&name).await? {
            Some(map) => {
                use base64::Engine;
                let engine = base64::prelude::BASE64_STANDARD;
                let data = map.data.unwrap_or_default().into_iter().map(|(k, v)| (k, engine.encode(v)));
                config_maps.insert(name, data.collect());
            }
            None if optional => {}
            None => return Ok(Err(format!("ConfigMap {name}"))),
        }
    }
    Ok(Ok((secrets, config_maps)))
}
