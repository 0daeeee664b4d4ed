//! What changed between two objects.

use serde_json::Value;

use super::list::index;
use super::shape::{Shape, field, item};
use crate::managed_fields::{FieldSet, PathElement};
use crate::schema::Node;

/// The paths that differ between two objects. What has parts is in `added` or `removed` together with them.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    pub(super) fn of(old: Option<&Value>, new: Option<&Value>, node: Option<&Node>) -> Self {
        let mut out = Self::default();
        visit(old, new, node, &mut Vec::new(), &mut out);
        out
    }

    /// Leaves out paths, and all below them.
    pub(super) fn without(self, ignored: &FieldSet) -> Self {
        if ignored.is_empty() {
            return self;
        }
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }
}

fn visit(
    old: Option<&Value>,
    new: Option<&Value>,
    node: Option<&Node>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    if old == new {
        return;
    }
    let before = old.map(|value| Shape::of(value, node));
    let after = new.map(|value| Shape::of(value, node));
    match (&before, &after) {
        (None, _) => out.added.insert(path.iter().cloned()),
        (_, None) => out.removed.insert(path.iter().cloned()),
        (Some(Shape::Fields(_)), Some(Shape::Fields(_)))
        | (Some(Shape::Entries(_)), Some(Shape::Entries(_))) => {}
        // Null is what has parts, without any: then only the parts changed.
        (Some(Shape::Whole), Some(Shape::Fields(map)))
            if old.is_some_and(Value::is_null) && !map.is_empty() => {}
        (Some(Shape::Whole), Some(Shape::Entries(list)))
            if old.is_some_and(Value::is_null) && !list.is_empty() => {}
        (Some(Shape::Fields(map)), Some(Shape::Whole))
            if new.is_some_and(Value::is_null) && !map.is_empty() => {}
        (Some(Shape::Entries(list)), Some(Shape::Whole))
            if new.is_some_and(Value::is_null) && !list.is_empty() => {}
        (Some(_), Some(_)) => out.modified.insert(path.iter().cloned()),
    }
    let fields = |shape: &Option<Shape<'_>>| matches!(shape, Some(Shape::Fields(_)));
    if fields(&before) || fields(&after) {
        objects(&before, &after, node, path, out);
    }
    let entries = |shape: &Option<Shape<'_>>| matches!(shape, Some(Shape::Entries(_)));
    if entries(&before) || entries(&after) {
        lists(&before, &after, node, path, out);
    }
}

fn objects(
    before: &Option<Shape<'_>>,
    after: &Option<Shape<'_>>,
    node: Option<&Node>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let fields = |shape: &Option<Shape<'_>>, visit: &mut dyn FnMut(&str, &Value)| {
        if let Some(Shape::Fields(map)) = shape {
            for (name, value) in *map {
                visit(name, value);
            }
        }
    };
    let get = |shape: &Option<Shape<'_>>, name: &str| match shape {
        Some(Shape::Fields(map)) => map.contains_key(name),
        _ => false,
    };
    fields(before, &mut |name, old| {
        let new = if let Some(Shape::Fields(map)) = after { map.get(name) } else { None };
        path.push(PathElement::Field(name.to_owned()));
        visit(Some(old), new, field(node, name), path, out);
        path.pop();
    });
    fields(after, &mut |name, new| {
        if !get(before, name) {
            path.push(PathElement::Field(name.to_owned()));
            visit(None, Some(new), field(node, name), path, out);
            path.pop();
        }
    });
}

fn lists(
    before: &Option<Shape<'_>>,
    after: &Option<Shape<'_>>,
    node: Option<&Node>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let (Ok(before), Ok(after)) = (index(entries_of(before), node), index(entries_of(after), node)) else {
        // Entries that cannot be told apart: the list counts as one.
        out.modified.insert(path.iter().cloned());
        return;
    };
    let new_keys = after.order.iter().filter(|key| !before.entries.contains_key(*key));
    for key in before.order.iter().chain(new_keys) {
        path.push(key.clone());
        visit(before.first(key), after.first(key), item(node), path, out);
        path.pop();
    }
}

const fn entries_of<'a>(shape: &Option<Shape<'a>>) -> &'a [Value] {
    match shape {
        Some(Shape::Entries(list)) => list,
        _ => &[],
    }
}
