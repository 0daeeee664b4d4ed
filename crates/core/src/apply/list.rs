//! Telling the entries of lists apart.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::item;
use crate::managed_fields::PathElement;
use crate::schema::{ListKind, Node};

/// The entries of a list by what tells them apart, in order of first appearance.
pub(super) struct Indexed<'a> {
    /// Each key once.
    pub(super) order: Vec<PathElement>,
    /// All entries of each key; more than one only in objects that were never valid.
    pub(super) entries: BTreeMap<PathElement, Vec<&'a Value>>,
}

impl<'a> Indexed<'a> {
    /// The first entry of a key.
    pub(super) fn first(&self, key: &PathElement) -> Option<&'a Value> {
        self.entries.get(key).and_then(|entries| entries.first()).copied()
    }
}

/// Indexes a list.
///
/// Fails with the position of an entry that cannot be told apart, and why.
pub(super) fn index<'a>(list: &'a [Value], node: Option<&Node>) -> Result<Indexed<'a>, (usize, String)> {
    let mut out = Indexed { order: Vec::with_capacity(list.len()), entries: BTreeMap::new() };
    for (position, entry) in list.iter().enumerate() {
        let key = key(entry, node).map_err(|why| (position, why))?;
        let place = out.entries.entry(key.clone()).or_default();
        if place.is_empty() {
            out.order.push(key);
        }
        place.push(entry);
    }
    Ok(out)
}

/// What tells an entry apart from the others. A missing key field counts with its default.
pub(super) fn key(entry: &Value, node: Option<&Node>) -> Result<PathElement, String> {
    match node.map(|node| &node.list) {
        Some(ListKind::Map(keys)) => {
            let Value::Object(fields) = entry else {
                return Err("an entry of a list that is a map must be an object".to_owned());
            };
            let mut found = Map::new();
            let mut missing = None;
            for name in keys {
                let default = || {
                    item(node).and_then(|item| item.property(name)).and_then(|field| field.default.as_ref())
                };
                match fields.get(&**name).or_else(default) {
                    Some(value) => {
                        found.insert(name.to_string(), value.clone());
                    }
                    None => missing = missing.or(Some(name)),
                }
            }
            match missing {
                Some(name) if found.is_empty() => {
                    Err(format!("the entry omits the key field {name:?}, which has no default"))
                }
                _ => Ok(PathElement::key(&found)),
            }
        }
        _ => match entry {
            Value::Null | Value::Object(_) | Value::Array(_) if !whole_entries(node) => {
                Err("an entry of a set must be a scalar".to_owned())
            }
            Value::Null => Err("an entry of a set must not be null".to_owned()),
            scalar => Ok(PathElement::value(scalar)),
        },
    }
}

/// Sets may have atomic lists and maps as entries.
fn whole_entries(node: Option<&Node>) -> bool {
    item(node).is_some_and(|item| item.atomic_map || item.item().is_some())
}
