//! Filling in defaults.

use serde_json::Value;

use super::node::{Additional, Node, Schema};

impl Schema {
    /// Fills in the schema's defaults, as `apiextensions.k8s.io/v1` does.
    ///
    /// A missing field that has a default gets it, in objects that are there (a missing object without a default of its
    /// own is not made). Null in a field that is not nullable counts as missing: it becomes the default, or is dropped.
    pub fn default(&self, value: &mut Value) {
        fill(value, &self.root);
    }
}

fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            for (name, property) in &node.properties {
                match (map.get(&**name), &property.default) {
                    (None, Some(default)) => {
                        map.insert(String::from(&**name), default.clone());
                    }
                    (Some(Value::Null), Some(default)) if !property.nullable => {
                        map.insert(String::from(&**name), default.clone());
                    }
                    (Some(Value::Null), None) if !property.nullable && !property.types.is_any() => {
                        map.remove(&**name);
                    }
                    _ => {}
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(property) = node.property(name) {
                    fill(value, property);
                } else if let Additional::Node(additional) = &node.additional {
                    replace_null(value, additional);
                    fill(value, additional);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = node.item() {
                for item in list {
                    replace_null(item, items);
                    fill(item, items);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
