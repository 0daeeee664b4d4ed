//! What a value is for merging: something whole, or something with parts.

use serde_json::{Map, Value};

use crate::managed_fields::PathElement;
use crate::schema::{ListKind, Node};

/// A value, seen with its schema. Without a schema lists are whole and objects have parts.
pub(super) enum Shape<'a> {
    /// A scalar, null, an atomic list or an atomic map.
    Whole,
    /// An object whose fields are owned one by one.
    Fields(&'a Map<String, Value>),
    /// A list whose entries are owned one by one.
    Entries(&'a [Value]),
}

impl<'a> Shape<'a> {
    pub(super) fn of(value: &'a Value, node: Option<&Node>) -> Self {
        match value {
            Value::Object(map) if node.is_none_or(|node| !node.atomic_map) => Self::Fields(map),
            Value::Array(list) if node.is_some_and(|node| node.list != ListKind::Atomic) => {
                Self::Entries(list)
            }
            _ => Self::Whole,
        }
    }
}

/// The schema of a field.
pub(super) fn field<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a Node> {
    node.and_then(|node| node.field(name))
}

/// Whether the schema names this field; fields of maps are data, and owned even when they hold nothing.
pub(super) fn is_named(node: Option<&Node>, name: &str) -> bool {
    node.is_some_and(|node| node.property(name).is_some())
}

/// The schema of list entries.
pub(super) fn item(node: Option<&Node>) -> Option<&Node> {
    node.and_then(Node::item)
}

/// The schema of what an element leads to.
pub(super) fn inside<'a>(node: Option<&'a Node>, element: &PathElement) -> Option<&'a Node> {
    match element {
        PathElement::Field(name) => field(node, name),
        _ => item(node),
    }
}
