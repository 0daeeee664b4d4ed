//! Which fields a value has, as the set that its applier owns.

use serde_json::Value;

use super::list::key;
use super::shape::{Shape, field, inside, is_named, item};
use crate::field_error::FieldError;
use crate::field_path::Trail;
use crate::managed_fields::{FieldSet, PathElement};
use crate::schema::Node;

/// The fields of a value that was applied.
///
/// # Errors
/// A list entry that cannot be told apart, or stands there twice.
pub(super) fn applied_fields(value: &Value, node: Option<&Node>) -> Result<FieldSet, FieldError> {
    let mut errors = Vec::new();
    let set = collect(value, node, Trail::Root, &mut |trail, value, why| {
        errors.push((trail.to_path(), value.clone(), why))
    });
    match errors.into_iter().next() {
        None => Ok(set),
        Some((path, value, Some(why))) => Err(FieldError::invalid(path, &value, why)),
        Some((path, value, None)) => Err(FieldError::duplicate(path, &value)),
    }
}

/// The fields of a value that is there; entries that cannot be told apart are left out.
pub(super) fn fields(value: &Value, node: Option<&Node>) -> FieldSet {
    collect(value, node, Trail::Root, &mut |_, _, _| {})
}

type Refuse<'a> = dyn FnMut(Trail<'_>, &Value, Option<String>) + 'a;

fn collect(value: &Value, node: Option<&Node>, trail: Trail<'_>, refuse: &mut Refuse<'_>) -> FieldSet {
    let mut set = FieldSet::new();
    match Shape::of(value, node) {
        Shape::Whole => {}
        Shape::Fields(map) => {
            for (name, value) in map {
                let node_of = field(node, name);
                let below = collect(value, node_of, Trail::Field(&trail, name), refuse);
                // Kubernetes does not count empty lists here, and so an apply of one may need two rounds to settle.
                let hollow = match value {
                    Value::Object(map) => map.is_empty(),
                    Value::Array(list) => list.is_empty(),
                    other => other.is_null(),
                };
                let whole = matches!(Shape::of(value, node_of), Shape::Whole);
                let member = whole || hollow || !is_named(node, name);
                set.put(PathElement::Field(name.clone()), member, below);
            }
        }
        Shape::Entries(list) => {
            for (position, entry) in list.iter().enumerate() {
                let here = Trail::Index(&trail, position);
                let key = match key(entry, node) {
                    Ok(key) => key,
                    Err(why) => {
                        refuse(here, entry, Some(why));
                        continue;
                    }
                };
                if set.has(&key) {
                    refuse(here, entry, None);
                    continue;
                }
                let below = collect(entry, item(node), here, refuse);
                set.put(key, true, below);
            }
        }
    }
    set
}

/// Named fields that have something below them count as members too. Removing all of a struct's fields then removes the
/// struct, unless somebody else has something in it.
pub(super) fn with_parents(set: &FieldSet, node: Option<&Node>) -> FieldSet {
    let mut out = FieldSet::new();
    for (element, member, below) in set.entries() {
        let named = matches!(element, PathElement::Field(name) if !below.is_empty() && is_named(node, name));
        out.put(element.clone(), member || named, with_parents(below, inside(node, element)));
    }
    out
}
