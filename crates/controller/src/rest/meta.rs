//! `metadata`: what the server stamps, keeps and checks.

use horchestra_core::field_error::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::kinds::fields::{get, list, text};
use crate::kinds::{Kind, Propagation};
use crate::name::{NameRule, is_path_segment};
use crate::object::metadata_mut;

/// All annotations together, as in Kubernetes.
const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Longest name part of a label or annotation key, and longest label value.
const MAX_QUALIFIED: usize = 63;
/// Finalizer that waits for dependents to be deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer that waits for dependents to be orphaned.
pub(crate) const ORPHAN: &str = "orphan";

/// Now, as metadata writes it: RFC 3339, whole seconds.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Makes the metadata of a new object. The name is there already.
pub(crate) fn stamp_new(kind: &Kind, namespace: &str, object: &mut Value) {
    let Some(metadata) = metadata_mut(object) else { return };
    for field in
        ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"]
    {
        metadata.remove(field);
    }
    if kind.namespaced() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    } else {
        metadata.remove("namespace");
    }
    metadata.insert("uid".to_owned(), json!(uuid::Uuid::new_v4().to_string()));
    metadata.insert("creationTimestamp".to_owned(), json!(now()));
    if kind.generation {
        metadata.insert("generation".to_owned(), json!(1));
    }
    prune_empty(metadata);
}

/// Puts back what a client cannot change.
pub(crate) fn keep_system(kind: &Kind, old: &Value, new: &mut Value) {
    let old_metadata = old.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(metadata) = metadata_mut(new) else { return };
    metadata.remove("selfLink");
    let kept = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "name",
        "generateName",
        "resourceVersion",
    ];
    for field in kept {
        match old_metadata.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    if !kind.namespaced() {
        metadata.remove("namespace");
    }
    prune_empty(metadata);
}

/// Go leaves empty maps and lists of metadata out when it writes them.
fn prune_empty(metadata: &mut Map<String, Value>) {
    for field in ["labels", "annotations"] {
        if metadata.get(field).and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove(field);
        }
    }
    for field in ["finalizers", "ownerReferences", "managedFields"] {
        if metadata.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            metadata.remove(field);
        }
    }
    if metadata.get("generateName").and_then(Value::as_str) == Some("") {
        metadata.remove("generateName");
    }
}

/// Raises the generation by one, if the kind keeps it.
pub(crate) fn bump_generation(object: &mut Value) {
    if let Some(metadata) = metadata_mut(object)
        && let Some(generation) = metadata.get("generation").and_then(Value::as_i64)
    {
        metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
}

/// True when something other than metadata and, for kinds that have it apart, status differs.
pub(crate) fn spec_changed(old: &Value, new: &Value, status_apart: bool) -> bool {
    let fields = |value: &Value| -> Map<String, Value> {
        let mut map = value.as_object().cloned().unwrap_or_default();
        for field in ["metadata", "apiVersion", "kind"] {
            map.remove(field);
        }
        if status_apart {
            map.remove("status");
        }
        map
    };
    fields(old) != fields(new)
}

/// True when an update would store what is stored already: only times in managedFields may differ.
pub(crate) fn unchanged(old: &Value, new: &Value) -> bool {
    let plain = |value: &Value| {
        let mut value = value.clone();
        if let Some(object) = value.as_object_mut() {
            object.remove("apiVersion");
        }
        if let Some(metadata) = metadata_mut(&mut value) {
            metadata.remove("resourceVersion");
            let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
                entry.remove("time");
            }
        }
        value
    };
    plain(old) == plain(new)
}

/// Finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}

/// True when the object is being deleted.
pub(crate) fn deleting(object: &Value) -> bool {
    get(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// True when nothing keeps a deleted object any more.
pub(crate) fn finished(kind: &Kind, object: &Value) -> bool {
    let spec = kind.group.is_empty()
        && kind.plural == "namespaces"
        && !list(object, &["spec", "finalizers"]).is_empty();
    finalizers(object).is_empty() && !spec
}

/// Marks an object as deleted now; the answer says whether anything changed.
pub(crate) fn mark_deleted(object: &mut Value, propagation: Option<Propagation>) -> bool {
    let before = finalizers(object).iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let mut after: Vec<String> = before.clone();
    if let Some(propagation) = propagation {
        let wanted = match propagation {
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
            Propagation::Background => None,
        };
        after.retain(|f| f != FOREGROUND && f != ORPHAN || Some(f.as_str()) == wanted);
        if let Some(wanted) = wanted
            && !after.iter().any(|f| f == wanted)
        {
            after.push(wanted.to_owned());
        }
    }
    let new = !deleting(object);
    if new {
        bump_generation(object);
    }
    let Some(metadata) = metadata_mut(object) else { return false };
    if new {
        metadata.insert("deletionTimestamp".to_owned(), json!(now()));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    }
    metadata.insert("finalizers".to_owned(), json!(after));
    prune_empty(metadata);
    new || before != after
}

/// The rules that hold for the metadata of every kind.
pub(crate) fn validate(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() {
        let name = text(new, &["metadata", "name"]);
        if name.is_empty() {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        } else if !is_path_segment(name) {
            errors.push(FieldError::invalid(
                "metadata.name",
                &json!(name),
                "may not contain '/' or '%', or be '.' or '..'",
            ));
        } else if let Some(why) = kind.strategy.names().check(name) {
            errors.push(FieldError::invalid("metadata.name", &json!(name), why));
        }
    }
    for field in ["labels", "annotations"] {
        let Some(map) = get(new, &["metadata", field]).and_then(Value::as_object) else { continue };
        let at = format!("metadata.{field}");
        for (key, value) in map {
            if let Some(why) =
                qualified(&if field == "annotations" { key.to_lowercase() } else { key.clone() })
            {
                errors.push(FieldError::invalid(at.clone(), &json!(key), why));
            }
            if field == "labels"
                && let Some(why) = value.as_str().and_then(label_value)
            {
                errors.push(FieldError::invalid(at.clone(), value, why));
            }
        }
        let size: usize = map.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
        if field == "annotations" && size > MAX_ANNOTATIONS {
            errors.push(FieldError::too_long(at, MAX_ANNOTATIONS));
        }
    }
    owners(new, &mut errors);
    for (index, finalizer) in finalizers(new).iter().enumerate() {
        if let Some(why) = qualified(finalizer) {
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why));
        }
    }
    if let Some(old) = old.filter(|old| deleting(old)) {
        let before = finalizers(old);
        let added: Vec<&str> = finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!("no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"),
            ));
        }
    }
    errors
}

fn owners(object: &Value, errors: &mut Vec<FieldError>) {
    let mut controller = false;
    for (index, owner) in list(object, &["metadata", "ownerReferences"]).iter().enumerate() {
        let at = format!("metadata.ownerReferences[{index}]");
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &[field]).is_empty() {
                errors.push(FieldError::required(format!("{at}.{field}"), "must not be empty"));
            }
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            if controller {
                errors.push(FieldError::invalid(
                    "metadata.ownerReferences",
                    owner,
                    "Only one reference can have Controller set to true",
                ));
            }
            controller = true;
        }
    }
}

const QUALIFIED_HELP: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// What is wrong with a key of labels, annotations or finalizers: `[prefix/]name`.
fn qualified(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(why) = prefix.and_then(|prefix| NameRule::Subdomain.check(prefix)) {
        return Some(format!("prefix part {why}"));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > MAX_QUALIFIED {
        return Some("name part must be no more than 63 characters".to_owned());
    }
    (!word(name)).then(|| QUALIFIED_HELP.to_owned())
}

fn label_value(value: &str) -> Option<String> {
    if value.len() > MAX_QUALIFIED {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!value.is_empty() && !word(value)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned()
    })
}

fn word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
