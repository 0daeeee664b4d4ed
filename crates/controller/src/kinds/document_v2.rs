//! `/openapi/v2` as protobuf, the only form in which client-go asks for it.
//!
//! kubectl reads it for kinds that are not in v3 (to say that there is no such kind), and old ones for everything. Only the
//! schemas are in it. Field numbers are those of `github.com/google/gnostic-models/openapiv2/OpenAPIv2.proto`.

use serde_json::{Map, Value, json};

use super::definitions;
use super::document::own_name;
use super::kind::SchemaSource;
use super::registry::Snapshot;

/// The media type that client-go asks for.
pub(crate) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Deepest schema that is written; those of definitions are bounded when they are accepted.
const MAX_DEPTH: usize = 100;

/// The document of everything that is served.
pub(crate) fn document(kinds: &Snapshot) -> Vec<u8> {
    let mut schemas = definitions::all().clone();
    for kind in kinds.kinds() {
        for version in kind.versions.iter().filter(|v| v.served) {
            if let SchemaSource::Own { document, .. } = &version.schema {
                schemas.insert(own_name(&kind.group, &version.name, &kind.kind), document.as_ref().clone());
            }
        }
    }
    let mut out = Message::default();
    out.text(1, "2.0");
    out.message(2, |info| {
        info.text(1, "Kubernetes");
        info.text(2, crate::VERSION);
    });
    out.message(8, |_| {});
    out.message(9, |all| named(all, &schemas, 0));
    out.0
}

/// Schemas by name: `repeated NamedSchema additional_properties = 1`.
fn named(out: &mut Message, schemas: &Map<String, Value>, depth: usize) {
    for (name, value) in schemas {
        out.message(1, |entry| {
            entry.text(1, name);
            entry.message(2, |s| schema(s, value, depth + 1));
        });
    }
}

fn schema(out: &mut Message, value: &Value, depth: usize) {
    let Some(fields) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    // v2 knows no `oneOf`; Kubernetes writes these as text there.
    let alternatives = fields.contains_key("oneOf") || fields.contains_key("x-kubernetes-int-or-string");
    let only = fields.get("allOf").and_then(Value::as_array).and_then(|all| all.first());
    let reference = text("$ref").or_else(|| only.and_then(|s| s.get("$ref")).and_then(Value::as_str));
    if let Some(name) = reference.and_then(|r| r.strip_prefix("#/components/schemas/")) {
        out.text(1, &format!("#/definitions/{name}"));
    }
    for (number, name) in [(2, "format"), (4, "description")] {
        if let Some(text) = text(name) {
            out.text(number, text);
        }
    }
    for name in
        fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        out.text(19, name);
    }
    match fields.get("additionalProperties") {
        Some(Value::Bool(true)) => out.message(21, |item| item.number(2, 1)),
        Some(inner @ Value::Object(_)) => {
            out.message(21, |item| item.message(1, |s| schema(s, inner, depth + 1)))
        }
        _ => {}
    }
    if let Some(kind) = if alternatives { Some("string") } else { text("type") } {
        out.message(22, |item| item.text(1, kind));
    }
    if let Some(items) = fields.get("items") {
        out.message(23, |item| item.message(1, |s| schema(s, items, depth + 1)));
    }
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        out.message(25, |all| named(all, properties, depth));
    }
    for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-kubernetes-")) {
        out.message(31, |entry| {
            entry.text(1, name);
            // JSON is YAML.
            entry.message(2, |any| any.text(2, &format!("{value}\n")));
        });
    }
}

/// A protobuf message in the making.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n.to_le_bytes()[0] | 0x80);
            n >>= 7;
        }
        self.0.push(n.to_le_bytes()[0]);
    }

    fn number(&mut self, field: u64, n: u64) {
        self.varint(field << 3);
        self.varint(n);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

/// The same for those who take JSON: the names of what is there, and where to look.
pub(crate) fn plain() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": crate::VERSION, "description": "The schemas are under /openapi/v3."},
        "paths": {},
        "definitions": {},
    })
}
