//! One stored object as of one revision, and how it is written down.
//!
//! What the store holds is the JSON that is served, without its resourceVersion, with
//! `apiVersion`, `kind` and `metadata` first. So an answer is made by writing a new head in front
//! of stored bytes: no decoding for a list or a watch that needs no filter.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::ApiError;

/// Where the fields of `metadata` begin.
const METADATA: &str = ",\"metadata\":{";
/// The head of a stored object is at most this long: API version, kind and punctuation.
const MAX_HEAD: usize = 1024;

/// The revision of the store at which something was written.
pub type RevisionNumber = u64;

/// An object as of one revision. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    key: Arc<str>,
    stored: Bytes,
    value: Value,
    revision: RevisionNumber,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.0.key)
            .field("revision", &self.0.revision)
            .finish_non_exhaustive()
    }
}

impl Object {
    /// Decodes what the store holds under `key`. Errors when the bytes are no object of ours.
    pub(crate) fn decode(key: &Arc<str>, stored: Bytes, revision: RevisionNumber) -> Result<Self, ApiError> {
        let broken = |why: &str| ApiError::Internal(format!("stored object {key} is damaged: {why}"));
        let mut value: Value = serde_json::from_slice(&stored).map_err(|error| broken(&error.to_string()))?;
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { return Err(broken("it has no metadata")) };
        metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        if head_length(&stored).is_none() {
            return Err(broken("its metadata does not come first"));
        }
        Ok(Self(Arc::new(Inner { key: key.clone(), stored, value, revision })))
    }

    /// An object that has just been written: `value` without resourceVersion is what `stored` encodes.
    pub(crate) fn written(key: &Arc<str>, stored: Bytes, mut value: Value, revision: RevisionNumber) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            if revision == 0 {
                metadata.remove("resourceVersion");
            } else {
                metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
            }
        }
        Self(Arc::new(Inner { key: key.clone(), stored, value, revision }))
    }

    /// The whole object, `metadata.resourceVersion` included, in the version it is stored in.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The whole object as `api_version`.
    #[must_use]
    pub fn value_as(&self, api_version: &str) -> Value {
        let mut value = self.0.value.clone();
        if let Some(object) = value.as_object_mut() {
            object.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
        }
        value
    }

    /// When it was written. Zero for the answer to a dry run of a create.
    #[must_use]
    pub fn revision(&self) -> RevisionNumber {
        self.0.revision
    }

    /// Key in the store.
    pub(crate) fn key(&self) -> &Arc<str> {
        &self.0.key
    }

    /// A string of `metadata`, empty when there is none.
    #[must_use]
    pub fn metadata(&self, field: &str) -> &str {
        metadata_str(&self.0.value, field)
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata("uid")
    }

    /// The served JSON as `api_version` and `kind`, appended to `out`.
    pub fn write(&self, api_version: &str, kind: &str, out: &mut Vec<u8>) {
        splice(&self.0.stored, self.0.revision, api_version, kind, out);
    }

    /// The same object with another revision: a deleted object carries that of its deletion.
    pub(crate) fn at(&self, revision: RevisionNumber) -> Self {
        Self::written(&self.0.key, self.0.stored.clone(), self.0.value.clone(), revision)
    }
}

/// A string of `value.metadata`, empty when there is none.
#[must_use]
pub(crate) fn metadata_str<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Writes `value` as the store keeps it. `value` must be an object with `apiVersion`, `kind` and a non-empty `metadata`.
pub(crate) fn encode(value: &Value) -> Result<Bytes, ApiError> {
    let broken =
        || ApiError::Internal("an object without apiVersion, kind and metadata cannot be stored".to_owned());
    let object = value.as_object().ok_or_else(broken)?;
    let api_version = object.get("apiVersion").and_then(Value::as_str).ok_or_else(broken)?;
    let kind = object.get("kind").and_then(Value::as_str).ok_or_else(broken)?;
    let metadata = object.get("metadata").and_then(Value::as_object).ok_or_else(broken)?;
    let mut out = Vec::with_capacity(1024);
    write_head(api_version, kind, &mut out);
    let rest = metadata.iter().filter(|(key, _)| key.as_str() != "resourceVersion");
    write_fields(rest, false, &mut out)?;
    out.push(b'}');
    let rest = object.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
    write_fields(rest, true, &mut out)?;
    out.push(b'}');
    Ok(Bytes::from(out))
}

fn write_head(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    // Group, version and kind are DNS names and identifiers: nothing to escape.
    for part in ["{\"apiVersion\":\"", api_version, "\",\"kind\":\"", kind, "\"", METADATA] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn write_fields<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    mut comma: bool,
    out: &mut Vec<u8>,
) -> Result<(), ApiError> {
    let failed = |error: serde_json::Error| ApiError::Internal(format!("cannot encode an object: {error}"));
    for (key, value) in fields {
        if comma {
            out.push(b',');
        }
        comma = true;
        serde_json::to_writer(&mut *out, key).map_err(failed)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value).map_err(failed)?;
    }
    Ok(())
}

/// Where the fields of `metadata` begin in stored bytes.
fn head_length(stored: &[u8]) -> Option<usize> {
    let head = stored.get(..stored.len().min(MAX_HEAD))?;
    head.windows(METADATA.len()).position(|w| w == METADATA.as_bytes()).map(|at| at + METADATA.len())
}

/// Appends the served form of stored bytes to `out`.
pub(crate) fn splice(
    stored: &[u8],
    revision: RevisionNumber,
    api_version: &str,
    kind: &str,
    out: &mut Vec<u8>,
) {
    let tail = head_length(stored).and_then(|at| stored.get(at..)).unwrap_or(b"}}");
    out.reserve(tail.len() + 128);
    write_head(api_version, kind, out);
    if revision > 0 {
        out.extend_from_slice(b"\"resourceVersion\":\"");
        out.extend_from_slice(revision.to_string().as_bytes());
        out.push(b'"');
        if tail.first() != Some(&b'}') {
            out.push(b',');
        }
    }
    out.extend_from_slice(tail);
}

/// `value.metadata` as a map, made when missing. `None` when `value` or its metadata is no object.
pub(crate) fn metadata_mut(value: &mut Value) -> Option<&mut Map<String, Value>> {
    value.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_stored_is_what_is_served() {
        let value = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": ",\"metadata\":{"},
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "3"},
        });
        let stored = encode(&value).unwrap();
        let object = Object::decode(&"/k".into(), stored, 7).unwrap();
        assert_eq!(object.value()["metadata"]["resourceVersion"], "7");
        let mut out = Vec::new();
        object.write("v2", "ConfigMap", &mut out);
        let served: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(served, object.value_as("v2"));
        assert_eq!(served["data"], value["data"]);
    }

    #[test]
    fn damage_is_an_error() {
        for bad in ["", "{}", "[]", r#"{"metadata":{"name":"x"}}"#, r#"{"apiVersion":"v1""#] {
            let error =
                Object::decode(&"/registry/x".into(), Bytes::from_static(bad.as_bytes()), 1).unwrap_err();
            assert!(error.to_string().contains("/registry/x"), "{error}");
        }
    }
}
