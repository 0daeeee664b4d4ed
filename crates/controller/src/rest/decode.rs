//! From a request's body to an object of a kind: types, unknown fields, defaults.

use horchestra_core::field_error::FieldError;
use serde_json::{Value, json};

use super::options::FieldValidation;
use crate::ApiError;
use crate::kinds::Endpoint;
use crate::kinds::fields::{drop_nulls, text};
use crate::object::metadata_mut;

/// Most warnings in one answer.
const MAX_WARNINGS: usize = 64;

/// A body as JSON, and the keys that appeared twice in it.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The last of repeated keys counts.
    pub value: Value,
    /// Paths of repeated keys.
    pub duplicates: Vec<String>,
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self { value, duplicates: Vec::new() }
    }
}

/// Checks that `value` is of the endpoint's kind, drops what its schema does not know, and says what that was.
///
/// The answer has `apiVersion` and `kind`, and metadata that is an object.
pub(crate) fn decode(
    endpoint: &Endpoint,
    body: Body,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Body { mut value, duplicates } = body;
    type_meta(endpoint, &mut value)?;
    let kind = endpoint.kind();
    if kind.built_in() {
        drop_nulls(&mut value);
    } else if let Some(metadata) = value.get_mut("metadata") {
        drop_nulls(metadata);
    }
    if value.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err(ApiError::BadRequest(format!("{}: metadata must be an object", cannot(endpoint))));
    }
    if value.get("metadata").is_some_and(Value::is_null)
        && let Some(object) = value.as_object_mut()
    {
        object.remove("metadata");
    }
    metadata_mut(&mut value);
    let unknown = endpoint.version().schema().map(|schema| schema.prune(&mut value)).unwrap_or_default();
    let mut found: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    found.extend(duplicates.iter().map(|path| format!("duplicate field {path:?}")));
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            let room = MAX_WARNINGS.saturating_sub(warnings.len());
            warnings.extend(found.into_iter().take(room));
        }
        FieldValidation::Strict if found.is_empty() => {}
        FieldValidation::Strict => {
            return Err(ApiError::BadRequest(format!(
                "{}: strict decoding error: {}",
                cannot(endpoint),
                found.join(", ")
            )));
        }
    }
    Ok(value)
}

fn cannot(endpoint: &Endpoint) -> String {
    let kind = &endpoint.kind().kind;
    format!("{kind} in version {:?} cannot be handled as a {kind}", endpoint.version().name)
}

fn type_meta(endpoint: &Endpoint, value: &mut Value) -> Result<(), ApiError> {
    let Some(object) = value.as_object_mut() else {
        return Err(ApiError::BadRequest(
            "the object provided is unrecognized (must be a JSON object)".to_owned(),
        ));
    };
    let (kind, api_version) = (endpoint.kind().kind.as_str(), endpoint.api_version());
    for (field, wanted) in [("apiVersion", api_version), ("kind", kind)] {
        match object.get(field) {
            None | Some(Value::Null) => {
                object.insert(field.to_owned(), json!(wanted));
            }
            Some(Value::String(text)) if text.is_empty() => {
                object.insert(field.to_owned(), json!(wanted));
            }
            Some(Value::String(text)) if text == wanted => {}
            Some(Value::String(text)) if field == "apiVersion" => {
                return Err(ApiError::BadRequest(format!(
                    "the API version in the data ({text}) does not match the expected API version ({wanted})"
                )));
            }
            Some(other) => {
                return Err(ApiError::BadRequest(format!(
                    "the {field} in the data ({}) does not match the expected {field} ({wanted})",
                    other.as_str().map_or_else(|| other.to_string(), str::to_owned)
                )));
            }
        }
    }
    Ok(())
}

/// Fills in defaults: of the schema, then of the kind.
pub(crate) fn default(endpoint: &Endpoint, value: &mut Value) {
    if let Some(schema) = endpoint.version().schema() {
        schema.default(value);
    }
    endpoint.kind().strategy.default(value);
}

/// All rules: metadata, schema, kind. Errors carry every failing field.
pub(crate) fn validate(endpoint: &Endpoint, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let kind = endpoint.kind();
    let schema: Vec<FieldError> = endpoint.version().schema().map(|s| s.validate(new)).unwrap_or_default();
    let mut errors = schema;
    // Code may rely on the types of the schema, so it is asked only when they hold.
    if errors.is_empty() {
        errors.extend(super::meta::validate(kind, new, old));
        errors.extend(kind.strategy.validate(new, old));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::Invalid { subject: Box::new(kind.subject(text(new, &["metadata", "name"]))), errors })
}
