//! An object as it should be.

use serde_json::{Map, Value, json};

use crate::{Error, GroupVersionKind, ObjectRef, Resource};

/// What somebody wants to exist: an object with `apiVersion`, `kind` and a name, and without what
/// only a server may set.
#[derive(Clone, PartialEq)]
pub struct Manifest {
    value: Value,
}

/// Fields of metadata that belong to the server.
const SERVER_FIELDS: [&str; 6] =
    ["resourceVersion", "creationTimestamp", "uid", "managedFields", "generation", "selfLink"];

impl Manifest {
    /// Checks a tree and takes out what belongs to the server.
    pub fn new(mut value: Value) -> Result<Self, Error> {
        let named = |field: &str| value.get(field).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
        let what = || match value.pointer("/metadata/name").and_then(Value::as_str) {
            Some(name) => format!("object {name:?}"),
            None => "object".to_owned(),
        };
        for field in ["apiVersion", "kind"] {
            if !named(field) {
                return Err(Error::invalid(
                    format!("{}: {field}", what()),
                    "is missing; every object names its apiVersion and kind",
                ));
            }
        }
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match value.pointer("/metadata/name").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => {}
            _ => {
                return Err(Error::invalid(
                    format!("{kind}: metadata.name"),
                    "is missing; desired objects are named by their author, generateName would make a new one each time",
                ));
            }
        }
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in SERVER_FIELDS {
                meta.remove(field);
            }
            for field in ["labels", "annotations", "namespace"] {
                if meta.get(field).is_some_and(Value::is_null) {
                    meta.remove(field);
                }
            }
            for field in ["labels", "annotations"] {
                if meta.get(field).is_some_and(|v| !v.is_object()) {
                    return Err(Error::invalid(
                        format!("{kind}: metadata.{field}"),
                        "is not a map of strings",
                    ));
                }
            }
        }
        Ok(Self { value })
    }

    /// From a typed resource.
    pub fn from_resource<T: Resource>(resource: &T) -> Result<Self, Error> {
        let mut value = serde_json::to_value(resource)?;
        set_type::<T>(&mut value);
        Self::new(value)
    }

    /// Which object it wants, its own namespace only if it names one.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.gvk().group_kind(), self.namespace(), self.name())
    }

    /// `apiVersion` and `kind`.
    pub fn gvk(&self) -> GroupVersionKind {
        let text = |field: &str| self.value.get(field).and_then(Value::as_str).unwrap_or_default();
        GroupVersionKind::from_manifest(text("apiVersion"), text("kind"))
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.meta("name")
    }

    /// `metadata.namespace`, empty if it names none.
    pub fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    fn meta(&self, field: &str) -> &str {
        self.value.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Puts it into a namespace (or, with an empty name, into none).
    pub fn set_namespace(&mut self, namespace: &str) {
        if let Some(meta) = self.value.get_mut("metadata").and_then(Value::as_object_mut) {
            if namespace.is_empty() {
                meta.remove("namespace");
            } else {
                meta.insert("namespace".into(), namespace.into());
            }
        }
    }

    /// The same, but only for the object with this uid: applying it never creates another.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        if let Some(meta) = self.value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".into(), uid.into());
        }
        self
    }

    /// The object as a tree.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The tree itself.
    pub fn into_value(self) -> Value {
        self.value
    }

    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.value
    }
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the content: it may be a Secret.
        write!(f, "Manifest({})", self.reference())
    }
}

impl serde::Serialize for Manifest {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(s)
    }
}

/// Fills in `apiVersion` and `kind`, which some types leave out when they are serialised.
pub(crate) fn set_type<T: Resource>(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        let gvk = GroupVersionKind::of::<T>();
        map.entry("apiVersion").or_insert_with(|| gvk.api_version().into());
        map.entry("kind").or_insert_with(|| (*gvk.kind).into());
        map.entry("metadata").or_insert_with(|| json!({}));
    }
}

/// The status of a resource as a tree; anything but an object is refused.
pub(crate) fn status_map(value: Value) -> Result<Map<String, Value>, Error> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err(Error::invalid("status", "is not an object")),
    }
}
