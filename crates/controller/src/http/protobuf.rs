//! Objects that clients send as protobuf: kubectl's `create` and client-go's typed clients do, for Kubernetes' own kinds.
//!
//! Only reading, and only kinds of `openapi/protobuf.json`, which is made from Kubernetes' types. Answers are JSON.
//! The format is that of the "Kubernetes Protobuf encoding": four bytes, then `runtime.Unknown`.

use std::collections::HashMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::ApiError;

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Nested messages; a pod template needs 12.
const MAX_DEPTH: usize = 40;
/// Values of one body, so that many empty list items do not become much memory.
const MAX_VALUES: usize = 500_000;

#[derive(Debug)]
struct Field {
    /// Empty when the fields of the message belong to its parent.
    name: String,
    kind: String,
    shape: Shape,
    /// A zero value is meant: Go writes zeros of fields that are not set, too.
    zero_counts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
}

type Messages = HashMap<String, HashMap<u64, Field>>;

fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        type Row = (u64, String, String, bool);
        let rows: HashMap<String, Vec<Row>> =
            serde_json::from_str(include_str!("../../openapi/protobuf.json")).unwrap_or_else(|error| {
                // A test excludes this; without the table protobuf is refused.
                tracing::error!(%error, "the embedded protobuf table cannot be read");
                HashMap::new()
            });
        rows.into_iter()
            .map(|(message, rows)| {
                let fields = rows.into_iter().map(|(number, name, kind, zero_counts)| {
                    let (shape, kind) = match (kind.strip_prefix("[]"), kind.strip_prefix("{}")) {
                        (Some(kind), _) => (Shape::List, kind.to_owned()),
                        (_, Some(kind)) => (Shape::Map, kind.to_owned()),
                        _ => (Shape::One, kind),
                    };
                    (number, Field { name, kind, shape, zero_counts })
                });
                (message, fields.collect())
            })
            .collect()
    })
}

/// The object in a body.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, ApiError> {
    let malformed = || ApiError::BadRequest("the body is not a Kubernetes object in protobuf".to_owned());
    let unknown = bytes.strip_prefix(MAGIC).ok_or_else(malformed)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Reader(unknown) {
        match field.ok_or_else(malformed)? {
            (1, Wire::Bytes(meta)) => {
                for field in Reader(meta) {
                    match field.ok_or_else(malformed)? {
                        (1, Wire::Bytes(text)) => api_version = string(text).ok_or_else(malformed)?,
                        (2, Wire::Bytes(text)) => kind = string(text).ok_or_else(malformed)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(content)) => raw = content,
            _ => {}
        }
    }
    let message = message_of(&api_version, &kind)
        .ok_or_else(|| ApiError::UnsupportedMediaType("application/json, application/yaml".to_owned()))?;
    let mut room = MAX_VALUES;
    let mut object = Map::new();
    read(raw, &message, 0, &mut room, &mut object).ok_or_else(malformed)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

fn message_of(api_version: &str, kind: &str) -> Option<String> {
    let package = match (api_version, kind) {
        (_, "DeleteOptions") => "meta",
        ("v1", _) => "core",
        (other, _) => other.strip_suffix("/v1")?.split('.').next()?,
    };
    let message = format!("{package}.{kind}");
    messages().contains_key(&message).then_some(message)
}

/// Reads the fields of a message into `out`. `None` when the bytes are malformed or too much.
fn read(
    bytes: &[u8],
    message: &str,
    depth: usize,
    room: &mut usize,
    out: &mut Map<String, Value>,
) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fields = messages().get(message)?;
    for field in Reader(bytes) {
        let (number, wire) = field?;
        // What a newer client knows more is left out, as by a server of this version.
        let Some(field) = fields.get(&number) else { continue };
        *room = room.checked_sub(1)?;
        if field.name.is_empty() {
            let Wire::Bytes(content) = wire else { return None };
            read(content, &field.kind, depth + 1, room, out)?;
            continue;
        }
        match field.shape {
            Shape::One => {
                let value = value(wire, &field.kind, depth, room)?;
                if field.zero_counts || !is_zero(&value) {
                    out.insert(field.name.clone(), value);
                }
            }
            Shape::List => {
                let list = out.entry(field.name.clone()).or_insert_with(|| json!([])).as_array_mut()?;
                list.push(value(wire, &field.kind, depth, room)?);
            }
            Shape::Map => {
                let Wire::Bytes(entry) = wire else { return None };
                let kind = field.kind.as_str();
                let (mut key, mut found) = (String::new(), None);
                for field in Reader(entry) {
                    match field? {
                        (1, Wire::Bytes(text)) => key = string(text)?,
                        (2, wire) => found = Some(value(wire, kind, depth, room)?),
                        _ => {}
                    }
                }
                let map = out.entry(field.name.clone()).or_insert_with(|| json!({})).as_object_mut()?;
                map.insert(key, found.unwrap_or_else(|| json!("")));
            }
        }
    }
    Some(())
}

fn value(wire: Wire<'_>, kind: &str, depth: usize, room: &mut usize) -> Option<Value> {
    Some(match (kind, wire) {
        ("s", Wire::Bytes(text)) => json!(string(text)?),
        ("b", Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        ("i", Wire::Number(n)) => json!(n.cast_signed()),
        ("t", Wire::Number(n)) => json!(n != 0),
        ("raw", Wire::Bytes(content)) => {
            let content = Reader(content).find_map(|field| match field {
                Some((1, Wire::Bytes(json))) => Some(json),
                _ => None,
            });
            super::body::decode_json(content?).ok()?.value
        }
        ("quantity", Wire::Bytes(content)) => json!(texts(content).next().flatten().unwrap_or_default()),
        ("time" | "micro", Wire::Bytes(content)) => {
            let (seconds, nanos) = two_numbers(content)?;
            if seconds == 0 && nanos == 0 {
                return Some(Value::Null);
            }
            let time = Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()?;
            let format = if kind == "time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            json!(time.strftime(format).to_string())
        }
        ("intstr", Wire::Bytes(content)) => {
            let (mut text, mut number, mut is_text) = (String::new(), 0, false);
            for field in Reader(content) {
                match field? {
                    (1, Wire::Number(n)) => is_text = n == 1,
                    (2, Wire::Number(n)) => number = n.cast_signed(),
                    (3, Wire::Bytes(bytes)) => text = string(bytes)?,
                    _ => {}
                }
            }
            if is_text { json!(text) } else { json!(number) }
        }
        (message, Wire::Bytes(content)) => {
            let mut object = Map::new();
            read(content, message, depth + 1, room, &mut object)?;
            Value::Object(object)
        }
        _ => return None,
    })
}

fn texts(content: &[u8]) -> impl Iterator<Item = Option<String>> {
    Reader(content).filter_map(|field| match field {
        Some((1, Wire::Bytes(text))) => Some(string(text)),
        _ => None,
    })
}

fn two_numbers(content: &[u8]) -> Option<(i64, i64)> {
    let (mut first, mut second) = (0, 0);
    for field in Reader(content) {
        match field? {
            (1, Wire::Number(n)) => first = n.cast_signed(),
            (2, Wire::Number(n)) => second = n.cast_signed(),
            _ => {}
        }
    }
    Some((first, second))
}

fn string(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_i64() == Some(0),
        // Go writes empty structs into JSON as well.
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order. `None` for the first that is malformed, and then the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut out = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            out |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(out);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Bytes(self.take(8)?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, wire))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Option<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        out.extend_from_slice(content);
        out
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &meta), bytes(2, raw)].concat()
    }

    #[test]
    fn every_message_is_known() {
        assert!(messages().len() > 100);
        for (name, fields) in messages() {
            for field in fields.values().filter(|f| f.kind.contains('.')) {
                assert!(messages().contains_key(&field.kind), "{name}: {}", field.kind);
            }
        }
    }

    #[test]
    fn a_config_map() {
        let entry = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let raw = [bytes(1, &[bytes(1, b"name"), bytes(2, b"")].concat()), bytes(2, &entry), vec![4 << 3, 0]]
            .concat();
        let object = decode(&body("v1", "ConfigMap", &raw)).unwrap();
        assert_eq!(
            object,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"k": "v"}, "immutable": false,
            })
        );
    }

    #[test]
    fn parts_and_times() {
        // Volume { name, inline VolumeSource { emptyDir {} } } in a Job.
        let source = bytes(2, &[]);
        let volume = [bytes(1, b"v"), bytes(2, &source)].concat();
        let pod = bytes(1, &volume);
        let template = bytes(2, &pod);
        let spec = bytes(6, &template);
        let time = bytes(8, &[8, 100]);
        let raw = [bytes(1, &[bytes(1, b"j"), time].concat()), bytes(2, &spec)].concat();
        let object = decode(&body("batch/v1", "Job", &raw)).unwrap();
        assert_eq!(object["metadata"]["creationTimestamp"], "1970-01-01T00:01:40Z");
        assert_eq!(object["spec"]["template"]["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    }

    #[test]
    fn garbage_is_an_error() {
        for bad in [&b""[..], b"k8s", b"k8s\0\xff", b"k8s\0\x0a\x7f", b"{}"] {
            assert!(matches!(decode(bad).unwrap_err().code(), 400 | 415), "{bad:?}");
        }
        assert_eq!(decode(&body("example.com/v1", "Thing", &[])).unwrap_err().code(), 415);
        assert_eq!(decode(&body("v1", "ConfigMap", &[0x0a, 0x7f])).unwrap_err().code(), 400);
    }
}
