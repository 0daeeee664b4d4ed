//! From a change and an object to the object as the client wants it.

use horchestra_core::field_error::FieldError;
use horchestra_core::strategic::strategic_patch;
use horchestra_core::{apply, patch};
use serde_json::{Value, json};

use super::change::{Change, Target};
use super::create::{manager, same_namespace};
use super::decode;
use super::options::{Subresource, WriteOptions};
use crate::ApiError;
use crate::error::Cause;
use crate::kinds::Endpoint;
use crate::kinds::fields::text;
use crate::object::metadata_mut;

/// Checks and decodes a body once, before the first attempt.
pub(super) fn prepare(
    target: Target<'_>,
    change: Change,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Change, ApiError> {
    let endpoint = target.endpoint;
    let change = match change {
        Change::Replace(body) => {
            Change::Replace(decode::decode(endpoint, body, options.field_validation, warnings)?.into())
        }
        Change::Apply(body) => {
            if options.field_manager.is_empty() {
                return Err(ApiError::BadRequest(
                    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
                        .to_owned(),
                ));
            }
            let missing = |field: &str| text(&body.value, &[field]).is_empty();
            if missing("apiVersion") || missing("kind") {
                return Err(ApiError::BadRequest(
                    "apiVersion and kind must be set in an apply patch".to_owned(),
                ));
            }
            let mut value = decode::decode(endpoint, body, options.field_validation, warnings)?;
            if value.get("metadata").and_then(|m| m.get("managedFields")).is_some() {
                return Err(ApiError::BadRequest("metadata.managedFields must be nil".to_owned()));
            }
            if text(&value, &["metadata", "name"]).is_empty()
                && let Some(metadata) = metadata_mut(&mut value)
            {
                metadata.insert("name".to_owned(), json!(target.name));
            }
            Change::Apply(value.into())
        }
        Change::StrategicPatch(_) if !endpoint.kind().built_in() => {
            return Err(ApiError::UnsupportedMediaType(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                    .to_owned(),
            ));
        }
        other => other,
    };
    if let Change::Replace(body) | Change::Apply(body) = &change {
        let name = text(&body.value, &["metadata", "name"]);
        if name != target.name && !(name.is_empty() && target.subresource == Subresource::Status) {
            return Err(ApiError::BadRequest(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
        same_namespace(endpoint.kind(), target.namespace, &body.value)?;
    }
    Ok(change)
}

/// The object as the client wants it, decoded, without regard to what it may change.
pub(super) fn propose(
    target: Target<'_>,
    before: &Value,
    change: &Change,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let endpoint = target.endpoint;
    let refused = |error: patch::PatchError| ApiError::BadRequest(error.to_string());
    let mut patched = before.clone();
    match change {
        Change::Replace(body) => {
            let mut value = body.value.clone();
            // Leaving managedFields out means keeping them.
            let kept = before.get("metadata").and_then(|m| m.get("managedFields")).cloned();
            if let (Some(metadata), Some(kept)) = (metadata_mut(&mut value), kept)
                && !metadata.contains_key("managedFields")
            {
                metadata.insert("managedFields".to_owned(), kept);
            }
            return Ok(value);
        }
        Change::Apply(body) => {
            let manager = manager(endpoint, options, target.subresource);
            return apply::apply(
                Some(before),
                &body.value,
                endpoint.version().schema(),
                &manager,
                options.force,
            )
            .map_err(|error| apply_error(target, error));
        }
        Change::JsonPatch(operations) => {
            patch::json_patch(&mut patched, operations).map_err(|error| match error {
                // A `test` that fails, or a path that is not there, is about this object.
                patch::PatchError::Failed { .. } => ApiError::Invalid {
                    subject: Box::new(target.subject()),
                    errors: vec![FieldError::invalid("patch", &json!(null), error.to_string())],
                },
                other => refused(other),
            })?
        }
        Change::MergePatch(document) => patch::merge_patch(&mut patched, document).map_err(refused)?,
        Change::StrategicPatch(document) => strategic(endpoint, &mut patched, document)?,
    }
    let value = decode::decode(endpoint, patched.into(), options.field_validation, warnings)?;
    if text(&value, &["metadata", "name"]) != target.name {
        return Err(ApiError::BadRequest("a patch cannot change metadata.name".to_owned()));
    }
    same_namespace(endpoint.kind(), target.namespace, &value)?;
    Ok(value)
}

fn strategic(endpoint: &Endpoint, value: &mut Value, document: &Value) -> Result<(), ApiError> {
    let schema = endpoint
        .version()
        .schema()
        .ok_or_else(|| ApiError::Internal(format!("{} has no schema to patch by", endpoint.kind().kind)))?;
    strategic_patch(value, document, schema).map_err(|error| ApiError::BadRequest(error.to_string()))
}

/// Errors when the client named another version or another object than the stored one.
pub(super) fn preconditions(
    target: Target<'_>,
    change: &Change,
    before: &Value,
    new: &Value,
) -> Result<(), ApiError> {
    let version = text(new, &["metadata", "resourceVersion"]);
    if version.is_empty() {
        let conditional = matches!(change, Change::Replace(_)) && !target.endpoint.kind().built_in();
        if conditional {
            let error =
                FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(ApiError::Invalid { subject: Box::new(target.subject()), errors: vec![error] });
        }
    } else if version != text(before, &["metadata", "resourceVersion"]) {
        return Err(ApiError::modified(target.subject()));
    }
    let (uid, current) = (text(new, &["metadata", "uid"]), text(before, &["metadata", "uid"]));
    if !uid.is_empty() && uid != current {
        return Err(ApiError::failed_operation(
            target.subject(),
            &format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"),
        ));
    }
    Ok(())
}

/// `before` with the status, and the managed fields, of `new`.
pub(super) fn with_status(before: &Value, new: &Value) -> Value {
    let mut out = before.clone();
    set_field(&mut out, "status", new.get("status").cloned());
    let managed = new.get("metadata").and_then(|m| m.get("managedFields")).cloned();
    if let (Some(metadata), Some(managed)) = (metadata_mut(&mut out), managed) {
        metadata.insert("managedFields".to_owned(), managed);
    }
    out
}

pub(super) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match value {
        Some(value) => object.insert(field.to_owned(), value),
        None => object.remove(field),
    };
}

pub(super) fn apply_error(target: Target<'_>, error: apply::ApplyError) -> ApiError {
    let message = error.to_string();
    let subject = Box::new(target.subject());
    match error {
        apply::ApplyError::Conflicts(conflicts) => {
            let cause = |conflict: &apply::Conflict| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: conflict.message(),
                field: conflict.path.clone(),
            };
            ApiError::Conflict { subject, message, causes: conflicts.iter().map(cause).collect() }
        }
        apply::ApplyError::Invalid(error) => ApiError::Invalid { subject, errors: vec![error] },
        _ => ApiError::BadRequest(message),
    }
}
