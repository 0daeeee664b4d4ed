//! Taking fields out of an object.

use serde_json::{Map, Value};

use super::list::key;
use super::shape::{Shape, field, item};
use crate::managed_fields::{FieldSet, PathElement};
use crate::schema::Node;

/// The value without the members of a set. What thereby loses its last part goes too, unless it is itself owned.
pub(super) fn remove(value: &Value, set: &FieldSet, owned: &FieldSet, node: Option<&Node>) -> Option<Value> {
    if set.is_empty() {
        return Some(value.clone());
    }
    match Shape::of(value, node) {
        Shape::Whole => Some(value.clone()),
        Shape::Fields(map) => {
            let mut out = Map::new();
            for (name, value) in map {
                let element = PathElement::Field(name.clone());
                if set.has(&element) {
                    continue;
                }
                let kept = match set.below(&element) {
                    Some(below) => inside(value, below, &element, owned, field(node, name)),
                    None => Some(value.clone()),
                };
                if let Some(kept) = kept {
                    out.insert(name.clone(), kept);
                }
            }
            (map.is_empty() || !out.is_empty()).then_some(Value::Object(out))
        }
        Shape::Entries(list) => {
            let kept = list.iter().filter_map(|entry| match key(entry, node) {
                Ok(key) if set.has(&key) => None,
                Ok(key) => match set.below(&key) {
                    Some(below) => inside(entry, below, &key, owned, item(node)),
                    None => Some(entry.clone()),
                },
                Err(_) => Some(entry.clone()),
            });
            let kept: Vec<Value> = kept.collect();
            (list.is_empty() || !kept.is_empty()).then_some(Value::Array(kept))
        }
    }
}

fn inside(
    value: &Value,
    set: &FieldSet,
    element: &PathElement,
    owned: &FieldSet,
    node: Option<&Node>,
) -> Option<Value> {
    const NOTHING: &FieldSet = &FieldSet::new();
    let kept = remove(value, set, owned.below(element).unwrap_or(NOTHING), node);
    match value {
        Value::Object(_) if kept.is_none() && owned.has(element) => Some(Value::Object(Map::new())),
        Value::Array(_) if kept.is_none() && owned.has(element) => Some(Value::Array(Vec::new())),
        _ => kept,
    }
}
