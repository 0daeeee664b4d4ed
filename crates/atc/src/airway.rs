//! Airways as resources of a reconciler: what should exist for one is the registration of its
//! flight, and then the definition of its kind.
//!
//! In that order, so that nobody can create a resource that no flight serves; and removed the other
//! way round, so that the flight still serves the resources that go with their definition.

use async_trait::async_trait;
use horchestra_api::Airway;
use horchestra_core::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use horchestra_core::readiness::{Readiness, readiness};
use horchestra_core::{Cluster, Condition, DesiredState, Error, Kind, Object, Reconciler, Result};
use serde_json::{Value, json};

use crate::AtcError;
use crate::registration::{GROUP, registration_kind};
use crate::template::{definition, instance_kind};

/// The finalizer of Airways.
pub const AIRWAY_FINALIZER: &str = "yoke.cd/strip.airway";

/// Says what should exist for an Airway.
#[derive(Debug, Clone, Copy, Default)]
pub struct AirwayReconciler;

impl From<AtcError> for Error {
    fn from(e: AtcError) -> Self {
        match e {
            AtcError::Template { path, message } => {
                Error::Invalid { path: format!("invalid airway: {path}"), message }
            }
            other => Error::terminal(other),
        }
    }
}

#[async_trait]
impl Reconciler for AirwayReconciler {
    type Resource = Airway;

    async fn reconcile(&self, airway: &Airway, cluster: &Cluster) -> Result<DesiredState> {
        let name = airway.metadata.name.clone().unwrap_or_default();
        let desired =
            DesiredState::new().with_value(registration(airway)?).then().with_value(definition(airway)?);

        let registration = cluster.get_object(&registration_kind(), &name).await?;
        let crd = cluster.get_object(&Kind::of::<CustomResourceDefinition>(), &name).await?;
        let state = |object: &Option<Object>| object.as_ref().map(|o| readiness(&o.to_value()));
        if let Some(text) = registration.as_ref().and_then(failure) {
            return Ok(desired.condition(Condition::ready(false, "Error", text)));
        }
        Ok(match (state(&registration), state(&crd)) {
            (Some(Readiness::Ready), Some(Readiness::Ready)) => {
                desired.condition(Condition::ready(true, "Ready", "Flight-Controller launched"))
            }
            _ => desired,
        })
    }
}

/// The error of a registration that could not load its module.
fn failure(registration: &Object) -> Option<String> {
    let value = registration.to_value();
    let conditions = value.pointer("/status/conditions")?.as_array()?;
    let failed = conditions.iter().find(|c| c.get("reason").and_then(Value::as_str) == Some("Error"))?;
    failed.get("message").and_then(Value::as_str).map(str::to_owned)
}

/// The registration of an Airway's flight: all of the Airway that matters to it.
fn registration(airway: &Airway) -> Result<Value> {
    let kind = instance_kind(airway)?;
    let mut spec = serde_json::to_value(&airway.spec)?;
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("template");
        spec.insert(
            "instances".into(),
            json!({
                "group": &*kind.gvk.group,
                "version": &*kind.gvk.version,
                "kind": &*kind.gvk.kind,
                "plural": &*kind.plural,
                "namespaced": kind.namespaced,
            }),
        );
    }
    Ok(json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "FlightRegistration",
        "metadata": {"name": airway.metadata.name},
        "spec": spec,
    }))
}
