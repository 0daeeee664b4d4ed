//! `v1` ConfigMap and Secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use horchestra_core::field_error::FieldError;
use serde_json::{Map, Value, json};

use super::fields::{fill, get, object_at, text};
use super::strategy::Strategy;

/// Most bytes of all values together, as in Kubernetes.
const MAX_DATA: usize = 1024 * 1024;
const MAX_KEY: usize = 253;

/// Rules of ConfigMaps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigMap;

/// Rules of Secrets: `stringData` is folded into `data`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secret;

impl Strategy for ConfigMap {
    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let size = keys(new, "data", &mut errors) + keys(new, "binaryData", &mut errors);
        base64_values(new, "binaryData", &mut errors);
        if let (Some(data), Some(binary)) = (map(new, "data"), map(new, "binaryData")) {
            for key in data.keys().filter(|key| binary.contains_key(*key)) {
                errors.push(FieldError::invalid(
                    format!("data[{key}]"),
                    &json!(key),
                    "duplicate of key present in binaryData",
                ));
            }
        }
        too_long(size, &mut errors);
        immutable(new, old, &["data", "binaryData"], &mut errors);
        errors
    }
}

impl Strategy for Secret {
    fn default(&self, object: &mut Value) {
        if let Some(secret) = object.as_object_mut() {
            fill(secret, "type", "Opaque");
        }
        let Some(Value::Object(plain)) = object.as_object_mut().and_then(|o| o.remove("stringData")) else {
            return;
        };
        if let Some(data) = object_at(object, &["data"]) {
            for (key, value) in plain {
                data.insert(key, json!(STANDARD.encode(value.as_str().unwrap_or_default())));
            }
        }
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let size = keys(new, "data", &mut errors);
        base64_values(new, "data", &mut errors);
        too_long(size, &mut errors);
        let required: &[&str] = match text(new, &["type"]) {
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            _ => &[],
        };
        for key in required.iter().filter(|key| map(new, "data").is_none_or(|data| !data.contains_key(**key)))
        {
            errors.push(FieldError::required(format!("data[{key}]"), ""));
        }
        if let Some(old) = old
            && text(old, &["type"]) != text(new, &["type"])
        {
            errors.push(FieldError::invalid("type", &json!(text(new, &["type"])), "field is immutable"));
        }
        immutable(new, old, &["data"], &mut errors);
        errors
    }
}

fn map<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    get(object, &[field]).and_then(Value::as_object)
}

/// Checks keys; the answer is the bytes of all values.
fn keys(object: &Value, field: &str, errors: &mut Vec<FieldError>) -> usize {
    let Some(map) = map(object, field) else { return 0 };
    let mut size = 0;
    for (key, value) in map {
        let text = value.as_str().unwrap_or_default();
        size += if field == "binaryData" || get(object, &["type"]).is_some() {
            text.len() / 4 * 3
        } else {
            text.len()
        };
        let allowed = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !allowed || key.is_empty() || key == "." || key.starts_with("..") || key.len() > MAX_KEY {
            errors.push(FieldError::invalid(
                format!("{field}[{key}]"),
                &json!(key),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ));
        }
    }
    size
}

fn base64_values(object: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in map(object, field).into_iter().flatten() {
        if let Some(text) = value.as_str()
            && STANDARD.decode(text).is_err()
        {
            errors.push(FieldError::invalid(format!("{field}[{key}]"), &json!("<value>"), "must be base64"));
        }
    }
}

fn too_long(size: usize, errors: &mut Vec<FieldError>) {
    if size > MAX_DATA {
        errors.push(FieldError::too_long("data", MAX_DATA));
    }
}

fn immutable(new: &Value, old: Option<&Value>, fields: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if get(old, &["immutable"]) != Some(&Value::Bool(true)) {
        return;
    }
    const WHY: &str = "field is immutable when `immutable` is set";
    if get(new, &["immutable"]) != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    for field in fields.iter().filter(|field| get(old, &[field]) != get(new, &[field])) {
        errors.push(FieldError::forbidden((*field).to_owned(), WHY));
    }
}
