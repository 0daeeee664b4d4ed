//! Which part of an object a writer reaches.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::manager::Manager;
use crate::managed_fields::{FieldSet, PathElement};
use crate::schema::Schema;

/// The subresource that has its own part of the object.
const STATUS: &str = "status";
/// What the server sets, whoever writes.
const SERVER_SET: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// The part of an object that a writer reaches.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scope {
    /// All of it: the kind has no status of its own.
    All,
    /// All but the status.
    Main,
    /// The status alone.
    Status,
}

impl Scope {
    pub(super) fn of(manager: &Manager, schema: &Schema) -> Self {
        match manager.subresource.as_deref() {
            Some(STATUS) => Self::Status,
            _ if schema.has_plain_status() => Self::All,
            _ => Self::Main,
        }
    }

    /// The fields out of reach, with all below them. For the status that is every other top-level field there is.
    pub(super) fn ignored(self, objects: [Option<&Value>; 2]) -> FieldSet {
        let field = |name: &str| [PathElement::Field(name.to_owned())];
        match self {
            Self::All => FieldSet::new(),
            Self::Main => [field(STATUS)].into_iter().collect(),
            Self::Status => {
                let fields = objects.into_iter().flatten().filter_map(Value::as_object).flat_map(Map::keys);
                fields.filter(|name| *name != STATUS).map(|name| field(name)).collect()
            }
        }
    }

    /// The part of an applied object that is in reach.
    pub(super) fn reach(self, applied: &Map<String, Value>) -> Map<String, Value> {
        let inside = |name: &str| match self {
            Self::All => true,
            Self::Main => name != STATUS,
            Self::Status => matches!(name, STATUS | "apiVersion" | "kind"),
        };
        applied
            .iter()
            .filter(|(name, _)| inside(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// What nobody owns: the object's identity and what the server sets. Only these paths, not what is below them.
pub(super) fn unowned() -> &'static FieldSet {
    static UNOWNED: OnceLock<FieldSet> = OnceLock::new();
    UNOWNED.get_or_init(|| {
        let field = |name: &str| PathElement::Field(name.to_owned());
        let top = ["apiVersion", "kind", "metadata"].into_iter().map(|name| vec![field(name)]);
        let below = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let below = below.into_iter().map(|name| vec![field("metadata"), field(name)]);
        top.chain(below).collect()
    })
}

/// What says which object it is; nobody owns it.
const IDENTITY: [&str; 2] = ["name", "namespace"];

/// Puts back what the server sets, whatever was written there. A new object keeps what it came with.
pub(super) fn keep_server_set(live: Option<&Value>, new: &mut Value) {
    let Some(live) = live.and_then(|live| live.get("metadata")).and_then(Value::as_object) else { return };
    let Some(new) = new.as_object_mut() else { return };
    // A manager may let go of the last field that anybody owns here; the object is still the same one.
    let metadata = new.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    for name in IDENTITY {
        if let (None, Some(value)) = (metadata.get(name), live.get(name)) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    for name in SERVER_SET {
        match live.get(name) {
            Some(value) => metadata.insert(name.to_owned(), value.clone()),
            None => metadata.remove(name),
        };
    }
}
