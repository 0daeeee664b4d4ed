//! `orch.ks-tool.dev/v1`: what runs on plain Linux machines, in a form that no Kubernetes cluster mistakes for its
//! own.

use kube_core::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::{Application, Node, PersistentVolume};

/// The group of applications, volumes and nodes.
pub const ORCH_GROUP: &str = "orch.ks-tool.dev";
/// The version of all its kinds.
pub const ORCH_VERSION: &str = "v1";

/// The definitions of all kinds of the group, as CustomResourceDefinitions.
///
/// # Errors
/// Where a schema cannot be written as JSON, which a test rules out.
pub fn crds() -> Result<Vec<Value>, serde_json::Error> {
    [Application::crd(), PersistentVolume::crd(), Node::crd()].iter().map(serde_json::to_value).collect()
}

/// A quantity: a number or text like `500m` and `1Gi`.
pub(crate) fn quantity_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
}

pub(crate) fn optional_quantity_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "nullable": true,
    })
}

/// An object whose fields are kept as they are.
pub(crate) fn any_object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "nullable": true})
}

/// A list of objects whose fields are kept as they are.
pub(crate) fn any_objects_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
}

/// Conditions are a list by type, as everywhere in Kubernetes.
pub(crate) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    let items = generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>();
    json_schema!({
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
