//! Dropping what a schema does not know.

use serde_json::Value;

use super::node::{Additional, Node, Schema};
use crate::field_path::Trail;

/// Most dropped fields that are named.
const MAX_REPORTED: usize = 256;

impl Schema {
    /// Drops every field that the schema does not specify, and answers their paths: `spec.list[0].name`.
    ///
    /// `x-kubernetes-preserve-unknown-fields` and `additionalProperties` keep fields; apiVersion, kind and metadata of
    /// the object itself and of embedded resources always stay. All unknown fields go, but at most 256 are named.
    pub fn prune(&self, value: &mut Value) -> Vec<String> {
        prune_node(value, &self.root)
    }
}

pub(super) fn prune_node(value: &mut Value, node: &Node) -> Vec<String> {
    let mut dropped = Vec::new();
    visit(value, node, Trail::Root, &mut dropped);
    dropped
}

fn visit(value: &mut Value, node: &Node, trail: Trail<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let open = node.preserve || matches!(node.additional, Additional::Any);
            map.retain(|key, value| {
                let here = Trail::Field(&trail, key);
                match node.field(key) {
                    Some(field) => {
                        visit(value, field, here, dropped);
                        true
                    }
                    None if open => true,
                    None => {
                        if dropped.len() < MAX_REPORTED {
                            dropped.push(here.to_path().to_string());
                        }
                        false
                    }
                }
            });
        }
        Value::Array(list) => {
            if let Some(items) = node.item() {
                for (index, item) in list.iter_mut().enumerate() {
                    visit(item, items, Trail::Index(&trail, index), dropped);
                }
            }
        }
        _ => {}
    }
}
