//! What an object becomes when another is laid over it.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::list::{Indexed, index};
use super::shape::{Shape, field, item};
use crate::managed_fields::PathElement;
use crate::schema::Node;

/// Lays `over` over `under`: fields and list entries of both stay, and where both have one, the upper one wins. Null
/// does not empty what has parts.
pub(super) fn merge(under: &Value, over: &Value, node: Option<&Node>) -> Value {
    match (Shape::of(under, node), Shape::of(over, node)) {
        (Shape::Fields(below), Shape::Fields(above)) => {
            let mut out = Map::new();
            for (name, below) in below {
                let value = above
                    .get(name)
                    .map_or_else(|| below.clone(), |above| merge(below, above, field(node, name)));
                out.insert(name.clone(), value);
            }
            for (name, above) in above {
                if !below.contains_key(name) {
                    out.insert(name.clone(), above.clone());
                }
            }
            Value::Object(out)
        }
        (Shape::Entries(below), Shape::Entries(above)) => match (index(below, node), index(above, node)) {
            (Ok(below), Ok(above)) => Value::Array(merge_lists(&below, &above, item(node))),
            // What cannot be told apart cannot be merged.
            _ => over.clone(),
        },
        (Shape::Fields(below), Shape::Whole) if over.is_null() && !below.is_empty() => under.clone(),
        (Shape::Entries(below), Shape::Whole) if over.is_null() && !below.is_empty() => under.clone(),
        _ => over.clone(),
    }
}

/// Entries of both lists. The order is the upper list's for its entries; an entry of the lower list alone stays before
/// the shared entry that it stood before.
fn merge_lists(below: &Indexed<'_>, above: &Indexed<'_>, node: Option<&Node>) -> Vec<Value> {
    let mut shared: VecDeque<_> = above.order.iter().filter(|key| below.entries.contains_key(*key)).collect();
    let mut lower = below.order.iter().peekable();
    let mut upper = above.order.iter().peekable();
    let mut out = Vec::new();
    loop {
        if let (Some(low), Some(up)) = (lower.peek().copied(), upper.peek().copied()) {
            if low == up {
                out.push(merge_entry(below, above, low, node));
                shared.pop_front();
                lower.next();
                upper.next();
                continue;
            }
            if above.entries.contains_key(low) && shared.front().is_some_and(|next| *next != low) {
                // Shared, but its turn by the upper order is another.
                lower.next();
                continue;
            }
        }
        if let Some(low) = lower.peek().copied()
            && !above.entries.contains_key(low)
        {
            out.extend(below.entries.get(low).into_iter().flatten().map(|entry| (*entry).clone()));
            lower.next();
            continue;
        }
        if let Some(up) = upper.next() {
            out.push(merge_entry(below, above, up, node));
            if shared.front() == Some(&up) {
                shared.pop_front();
            }
            continue;
        }
        // What is left below was merged already.
        if lower.next().is_none() {
            return out;
        }
    }
}

fn merge_entry(below: &Indexed<'_>, above: &Indexed<'_>, key: &PathElement, node: Option<&Node>) -> Value {
    match (below.first(key), above.first(key)) {
        (Some(below), Some(above)) => merge(below, above, node),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => Value::Null,
    }
}
