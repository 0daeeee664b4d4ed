//! Kubernetes' own schemas, cut out of its OpenAPI document and embedded (see `openapi/extract.py`).

use std::io::Read;
use std::sync::OnceLock;

use horchestra_core::schema::Schema;
use serde_json::{Map, Value, json};

static PACKED: &[u8] = include_bytes!("../../openapi/definitions.json.gz");
const REFERENCE: &str = "#/components/schemas/";
/// Name of the schema of `metadata`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Types that hold any JSON although the document says `object`.
const OPAQUE: [&str; 2] =
    ["io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"];
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
/// Nested references are at most this deep in Kubernetes' document (a pod template is 12).
const MAX_DEPTH: usize = 64;

/// Schema name to schema, with references.
pub(crate) fn all() -> &'static Map<String, Value> {
    static DEFINITIONS: OnceLock<Map<String, Value>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let mut text = Vec::new();
        let read = flate2::read::GzDecoder::new(PACKED).read_to_end(&mut text);
        let parsed = read
            .map_err(|e| e.to_string())
            .and_then(|_| serde_json::from_slice(&text).map_err(|e| e.to_string()));
        parsed.unwrap_or_else(|error| {
            // A test excludes this; without definitions the server still serves, unchecked.
            tracing::error!(%error, "the embedded OpenAPI definitions cannot be read");
            Map::new()
        })
    })
}

/// The schema `name` with every reference replaced by what it refers to, as a structural schema.
pub(crate) fn inlined(name: &str) -> Option<Value> {
    let mut path = Vec::new();
    inline_named(name, &mut path)
}

/// The compiled schema `name`.
pub(crate) fn compile(name: &str) -> Option<Schema> {
    match Schema::parse_built_in(&inlined(name)?) {
        Ok(schema) => Some(schema),
        Err(errors) => {
            tracing::error!(name, ?errors, "an embedded definition cannot be used");
            None
        }
    }
}

fn opaque() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn inline_named(name: &str, path: &mut Vec<String>) -> Option<Value> {
    if OPAQUE.contains(&name) {
        return Some(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    }
    if name == MICRO_TIME {
        return Some(json!({"type": "string", "format": "date-time"}));
    }
    // JSONSchemaProps refers to itself. What is below is checked where definitions are parsed.
    if path.len() > MAX_DEPTH || path.iter().any(|seen| seen == name) {
        return Some(opaque());
    }
    let definition = all().get(name)?;
    path.push(name.to_owned());
    let out = inline(definition, path);
    path.pop();
    out
}

fn inline(schema: &Value, path: &mut Vec<String>) -> Option<Value> {
    let schema = schema.as_object()?;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return inline_named(reference.strip_prefix(REFERENCE)?, path);
    }
    let alternatives = schema.get("oneOf").and_then(Value::as_array);
    if alternatives.is_some() {
        // IntOrString and Quantity: the only alternatives in the document.
        return Some(json!({"x-kubernetes-int-or-string": true}));
    }
    let mut out = Map::new();
    // A reference with a description is written as an `allOf` of one.
    if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
        && let Value::Object(fields) = inline(only, path)?
    {
        out = fields;
    }
    for (key, value) in schema {
        let value = match key.as_str() {
            "properties" => {
                let mut properties = Map::new();
                for (name, property) in value.as_object()? {
                    properties.insert(name.clone(), inline(property, path)?);
                }
                Value::Object(properties)
            }
            "items" | "additionalProperties" => inline(value, path)?,
            "description" | "allOf" | "x-kubernetes-group-version-kind" | "x-kubernetes-unions" => continue,
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if out.is_empty() {
        return Some(opaque());
    }
    Some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_inlines() {
        assert!(all().len() > 100);
        for name in all().keys() {
            let schema = inlined(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!schema.to_string().contains(REFERENCE), "{name}");
        }
    }

    #[test]
    fn list_types_survive() {
        let job = inlined("io.k8s.api.batch.v1.Job").unwrap();
        let containers = &job["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]
            ["containers"];
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(
            containers["items"]["properties"]["ports"]["items"]["properties"]["protocol"]["default"],
            "TCP"
        );
        assert_eq!(
            containers["items"]["properties"]["resources"]["properties"]["limits"]["additionalProperties"]["x-kubernetes-int-or-string"],
            true
        );
    }
}
