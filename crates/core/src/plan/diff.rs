//! What applying a manifest would change on a live object, as far as that can be told from here.
//!
//! Server-side apply sets the fields that are applied and removes those that the same manager
//! applied earlier and does not any more (kubernetes.io/docs/reference/using-api/server-side-apply).
//! Fields of others, and defaults that the server filled in, are not differences.

use serde_json::{Map, Value};

use super::Change;

/// Nesting deeper than this is compared as a whole.
const MAX_DEPTH: usize = 64;

/// Lists of objects are compared element by element along the first of these keys that all
/// elements of both sides have. They are the keys that Kubernetes' own list maps use most.
const LIST_KEYS: [&str; 8] = ["name", "uid", "containerPort", "mountPath", "type", "key", "port", "ip"];

/// The fields that applying `manifest` as `manager` changes on `live`. Empty if it changes nothing.
pub fn differences(live: &Value, manifest: &Value, manager: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut path = Path::default();
    compare(live, manifest, &mut path, 0, &mut changes);
    for entry in live.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten() {
        let ours = entry.get("manager").and_then(Value::as_str) == Some(manager)
            && entry.get("operation").and_then(Value::as_str) == Some("Apply")
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default().is_empty();
        if let (true, Some(fields)) = (ours, entry.get("fieldsV1").and_then(Value::as_object)) {
            dropped(fields, Some(live), Some(manifest), &mut Path::default(), 0, &mut changes);
        }
    }
    if manifest.get("kind").and_then(Value::as_str) == Some("Secret") {
        for change in &mut changes {
            if change.path.starts_with("data") || change.path.starts_with("stringData") {
                (change.from, change.to) = (None, None);
            }
        }
    }
    changes
}

#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn text(&self) -> String {
        let mut out = String::new();
        for part in &self.0 {
            if !out.is_empty() && !part.starts_with('[') {
                out.push('.');
            }
            out.push_str(part);
        }
        out
    }

    fn field(name: &str) -> String {
        if name.contains('.') || name.contains('/') { format!("[{name}]") } else { name.to_owned() }
    }

    fn within<T>(&mut self, part: String, f: impl FnOnce(&mut Self) -> T) -> T {
        self.0.push(part);
        let out = f(self);
        self.0.pop();
        out
    }
}

fn compare(live: &Value, wanted: &Value, path: &mut Path, depth: usize, changes: &mut Vec<Change>) {
    if live == wanted {
        return;
    }
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) if depth < MAX_DEPTH => {
            for (key, value) in wanted {
                // The server drops nulls; a status is not applied with its object.
                if value.is_null() || (depth == 0 && key == "status") {
                    continue;
                }
                path.within(Path::field(key), |path| match live.get(key) {
                    Some(live) => compare(live, value, path, depth + 1, changes),
                    None if is_void(value) => {}
                    None => changes.push(Change { path: path.text(), from: None, to: Some(value.clone()) }),
                });
            }
        }
        (Value::Array(live), Value::Array(wanted)) if depth < MAX_DEPTH => {
            lists(live, wanted, path, depth, changes);
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ => changes.push(Change { path: path.text(), from: Some(live.clone()), to: Some(wanted.clone()) }),
    }
}

/// An object without content: applying it sets nothing that a reader could tell.
fn is_void(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(|v| v.is_null() || is_void(v)),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn lists(live: &[Value], wanted: &[Value], path: &mut Path, depth: usize, changes: &mut Vec<Change>) {
    // Finalizers and owner references are shared with others: ours have to be among them.
    let shared = path.0.len() == 2
        && matches!(path.0.last().map(String::as_str), Some("finalizers" | "ownerReferences"));
    let keyed = |list: &[Value], key: &str| !list.is_empty() && list.iter().all(|v| v.get(key).is_some());
    let key = LIST_KEYS.into_iter().find(|k| keyed(wanted, k) && (live.is_empty() || keyed(live, k)));
    match key {
        Some(key) if shared || live.len() == wanted.len() => {
            for (i, element) in wanted.iter().enumerate() {
                let id = element.get(key);
                let found = live.iter().find(|l| l.get(key) == id);
                path.within(format!("[{i}]"), |path| match found {
                    Some(live) => compare(live, element, path, depth + 1, changes),
                    None => changes.push(Change { path: path.text(), from: None, to: Some(element.clone()) }),
                });
            }
        }
        None if shared => {
            for element in wanted.iter().filter(|w| !live.contains(w)) {
                changes.push(Change { path: path.text(), from: None, to: Some(element.clone()) });
            }
        }
        None if live.len() == wanted.len() && wanted.iter().all(Value::is_object) => {
            for (i, (live, element)) in live.iter().zip(wanted).enumerate() {
                path.within(format!("[{i}]"), |path| compare(live, element, path, depth + 1, changes));
            }
        }
        _ => changes.push(Change {
            path: path.text(),
            from: Some(Value::Array(live.to_vec())),
            to: Some(Value::Array(wanted.to_vec())),
        }),
    }
}

/// Walks the fields that we own on the live object and reports those that we no longer want.
fn dropped(
    fields: &Map<String, Value>,
    live: Option<&Value>,
    wanted: Option<&Value>,
    path: &mut Path,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    if depth >= MAX_DEPTH {
        return;
    }
    for (key, inner) in fields {
        let (live, wanted, part) = match key.split_once(':') {
            Some(("f", name)) => {
                (live.and_then(|v| v.get(name)), wanted.and_then(|v| v.get(name)), Path::field(name))
            }
            Some(("k", keys)) => {
                let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { continue };
                (element(live, &keys), element(wanted, &keys), format!("[{}]", Value::Object(keys)))
            }
            Some(("v", value)) => {
                let Ok(value) = serde_json::from_str::<Value>(value) else { continue };
                (member(live, &value), member(wanted, &value), format!("[{value}]"))
            }
            // "." is the field itself; indexes are not used by Kubernetes' lists.
            _ => continue,
        };
        let Some(live) = live else { continue };
        let text = part.clone();
        path.within(part, |path| match wanted.filter(|w| !w.is_null()) {
            None if text == "apiVersion" || text == "kind" => {}
            None => changes.push(Change { path: path.text(), from: Some(live.clone()), to: None }),
            Some(wanted) => {
                if let Some(inner) = inner.as_object() {
                    dropped(inner, Some(live), Some(wanted), path, depth + 1, changes);
                }
            }
        });
    }
}

/// The element of a list map with these keys. A manifest may leave out a key that has a default.
fn element<'v>(list: Option<&'v Value>, keys: &Map<String, Value>) -> Option<&'v Value> {
    list?.as_array()?.iter().find(|e| keys.iter().all(|(k, v)| e.get(k).is_none_or(|have| have == v)))
}

fn member<'v>(list: Option<&'v Value>, value: &Value) -> Option<&'v Value> {
    list?.as_array()?.iter().find(|e| *e == value)
}
