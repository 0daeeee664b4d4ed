//! Rules of structural schemas that need the whole of a position.

use serde_json::Value;

use super::node::{Additional, ListKind, Node, Rules};
use super::prune::prune_node;
use super::validate::validate_node;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

/// Checks a compiled schema; errors are added.
pub(super) fn check(root: &Node, errors: &mut Vec<FieldError>) {
    visit(root, &FieldPath::root(), errors);
}

fn visit(node: &Node, path: &FieldPath, errors: &mut Vec<FieldError>) {
    list_type(node, path, errors);
    default_fits(node, path, errors);
    if let Some(rules) = &node.rules {
        for (keyword, list) in junctors(rules) {
            for (index, nested) in list.iter().enumerate() {
                covered(nested, node, &path.field(keyword).index(index), path, errors);
            }
        }
        if let Some(not) = &rules.not {
            covered(not, node, &path.field("not"), path, errors);
        }
    }
    for (name, property) in &node.properties {
        if node.resource && &**name == "metadata" {
            // Its rules are Kubernetes' own.
            continue;
        }
        visit(property, &path.field("properties").key(&**name), errors);
    }
    if let Additional::Node(additional) = &node.additional {
        visit(additional, &path.field("additionalProperties"), errors);
    }
    if let Some(items) = node.item() {
        visit(items, &path.field("items"), errors);
    }
}

const fn junctors(rules: &Rules) -> [(&'static str, &Vec<Node>); 3] {
    [("allOf", &rules.all_of), ("anyOf", &rules.any_of), ("oneOf", &rules.one_of)]
}

/// Whatever value validation looks at must also be specified outside of it.
fn covered(nested: &Node, outer: &Node, from: &FieldPath, to: &FieldPath, errors: &mut Vec<FieldError>) {
    for (name, property) in &nested.properties {
        let (from, to) = (from.field("properties").key(&**name), to.field("properties").key(&**name));
        match outer.field(name) {
            Some(outer) => covered(property, outer, &from, &to, errors),
            None => errors.push(FieldError::required(to, format!("because it is defined in {from}"))),
        }
    }
    if let Some(items) = nested.item() {
        let (from, to) = (from.field("items"), to.field("items"));
        match outer.item() {
            Some(outer) => covered(items, outer, &from, &to, errors),
            None => errors.push(FieldError::required(to, format!("because it is defined in {from}"))),
        }
    }
    if let Some(rules) = &nested.rules {
        for (keyword, list) in junctors(rules) {
            for (index, deeper) in list.iter().enumerate() {
                covered(deeper, outer, &from.field(keyword).index(index), to, errors);
            }
        }
        if let Some(not) = &rules.not {
            covered(not, outer, &from.field("not"), to, errors);
        }
    }
}

fn list_type(node: &Node, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if node.list == ListKind::Atomic {
        return;
    }
    if !node.types.is("array") {
        let detail = "must be array if x-kubernetes-list-type is specified";
        errors.push(FieldError::invalid(path.field("type"), &Value::from(node.types.names()), detail));
        return;
    }
    let Some(items) = node.item() else { return };
    let at = path.field("items");
    match &node.list {
        ListKind::Atomic => {}
        ListKind::Set => {
            let granular = (items.types.is("object") && !items.atomic_map)
                || (items.types.is("array") && items.list != ListKind::Atomic);
            if granular {
                let detail = "items of a set must be scalars or atomic";
                errors.push(FieldError::forbidden(at.field("x-kubernetes-map-type"), detail));
            }
        }
        ListKind::Map(keys) => {
            if !items.types.is("object") {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at.field("type"), &Value::from(items.types.names()), detail));
                return;
            }
            let required = items.rules.as_ref().map(|rules| rules.required.as_slice()).unwrap_or_default();
            for key in keys {
                match items.property(key) {
                    None => {
                        let at = path.field("x-kubernetes-list-map-keys");
                        errors.push(FieldError::invalid(
                            at,
                            &Value::from(&**key),
                            "entries must all be names of item properties",
                        ));
                    }
                    Some(property) if property.types.has_structure() => {
                        let at = at.field("properties").key(&**key).field("type");
                        errors.push(FieldError::invalid(
                            at,
                            &Value::from(property.types.names()),
                            "must be a scalar type if parent array's x-kubernetes-list-type is map",
                        ));
                    }
                    Some(property) if property.default.is_none() && !required.contains(key) => {
                        let at = at.field("properties").key(&**key).field("default");
                        errors.push(FieldError::required(at, "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

fn default_fits(node: &Node, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(default) = &node.default else { return };
    let at = path.field("default");
    let mut pruned = default.clone();
    if let Some(first) = prune_node(&mut pruned, node).into_iter().next() {
        errors.push(FieldError::invalid(at, default, format!("must not have unknown fields: {first}")));
        return;
    }
    for mut error in validate_node(default, node) {
        if error.detail.starts_with("in body") {
            error.detail.insert_str(0, "default ");
        }
        errors.push(error.under(at.clone()));
    }
}
