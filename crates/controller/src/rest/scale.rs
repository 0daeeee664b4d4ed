//! The scale subresource: `autoscaling/v1` Scale over the numbers of an object.

use horchestra_core::field_error::FieldError;
use serde_json::{Value, json};

use super::change::{Change, Target};
use super::decode::Body;
use super::options::{Subresource, WriteOptions};
use super::written::Written;
use crate::kinds::fields::{get, object_at};
use crate::kinds::{Endpoint, JsonPath};
use crate::object::Object;
use crate::{Api, ApiError};

impl Api {
    /// The Scale of an object.
    pub async fn scale(&self, endpoint: &Endpoint, namespace: &str, name: &str) -> Result<Value, ApiError> {
        scale_of(endpoint, &self.get(endpoint, namespace, name).await?)
    }

    /// Changes the Scale of an object: only `spec.replicas` and the version count. `change` gets the Scale as it is.
    pub async fn change_scale(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        change: impl Fn(Value) -> Result<Value, ApiError>,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let old = self.get(endpoint, namespace, name).await?;
        let new = change(scale_of(endpoint, &old)?)?;
        let replicas = get(&new, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let error =
                FieldError::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
            return Err(ApiError::Invalid {
                subject: Box::new(endpoint.kind().subject(name)),
                errors: vec![error],
            });
        }
        let path = replicas_path(endpoint)?;
        let fields = path.fields().unwrap_or_default();
        let mut patch = json!({});
        if let Some((last, parents)) = fields.split_last()
            && let Some(map) = object_at(&mut patch, parents)
        {
            map.insert((*last).to_owned(), json!(replicas));
        }
        let version = crate::object::metadata_str(&new, "resourceVersion");
        if !version.is_empty() {
            patch["metadata"] = json!({"resourceVersion": version});
        }
        let target = Target { endpoint, namespace, name, subresource: Subresource::Scale };
        let Written { object, .. } =
            self.change(target, Change::MergePatch(Body::from(patch).value), options).await?;
        scale_of(endpoint, &object)
    }
}

fn replicas_path(endpoint: &Endpoint) -> Result<JsonPath, ApiError> {
    let scale = endpoint.version().scale.as_ref().ok_or(ApiError::UnknownPath)?;
    JsonPath::parse(&scale.spec_replicas).map_err(|why| ApiError::Internal(format!("the scale path: {why}")))
}

fn scale_of(endpoint: &Endpoint, object: &Object) -> Result<Value, ApiError> {
    let scale = endpoint.version().scale.as_ref().ok_or(ApiError::UnknownPath)?;
    let number = |path: &str| {
        JsonPath::parse(path).ok().and_then(|p| p.first(object.value()).and_then(Value::as_i64)).unwrap_or(0)
    };
    let selector = match &scale.selector {
        Some(path) => JsonPath::parse(path)
            .ok()
            .and_then(|p| p.first(object.value()).and_then(Value::as_str).map(str::to_owned))
            .unwrap_or_default(),
        None => crate::kinds::builtin::selector_cell(object.value()).as_str().unwrap_or_default().to_owned(),
    };
    let mut metadata = json!({"name": object.name(), "resourceVersion": object.revision().to_string()});
    for field in ["namespace", "uid", "creationTimestamp"] {
        if !object.metadata(field).is_empty() {
            metadata[field] = json!(object.metadata(field));
        }
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": number(&scale.spec_replicas)},
        "status": {"replicas": number(&scale.status_replicas), "selector": selector},
    }))
}
