//! Strategic merge patch, for built-in kinds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::field_path::Trail;
use crate::json::depth_within;
use crate::patch::{MAX_DEPTH, PatchError};
use crate::schema::{Node, Schema};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch, all of it or nothing.
///
/// It is a merge patch that also merges lists, where the schema says so (`x-kubernetes-patch-strategy` and
/// `x-kubernetes-patch-merge-key`), and that has directives: `$patch` (merge, replace, delete), `$retainKeys`,
/// `$setElementOrder/LIST` and `$deleteFromPrimitiveList/LIST`. The rules are those of
/// <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>.
/// Not for custom resources: Kubernetes refuses it there.
///
/// # Errors
/// [`PatchError::Malformed`] names the field whose directive or list is not understood; [`PatchError::TooDeep`].
pub fn strategic_patch(target: &mut Value, patch: &Value, schema: &Schema) -> Result<(), PatchError> {
    if !depth_within(patch, MAX_DEPTH) || !depth_within(target, MAX_DEPTH) {
        return Err(PatchError::TooDeep);
    }
    let (Value::Object(before), Value::Object(patch)) = (&*target, patch) else {
        return Err(PatchError::Malformed("a strategic merge patch is an object for an object".to_owned()));
    };
    let mut patched = before.clone();
    merge_object(&mut patched, patch, Some(schema.root()), Trail::Root)?;
    *target = Value::Object(patched);
    Ok(())
}

fn malformed(trail: Trail<'_>, why: &str) -> PatchError {
    PatchError::Malformed(format!("{}: {why}", trail.to_path()))
}

fn is_directive(name: &str) -> bool {
    matches!(name, PATCH | RETAIN_KEYS) || name.starts_with(SET_ORDER) || name.starts_with(DELETE_VALUES)
}

fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    node: Option<&Node>,
    trail: Trail<'_>,
) -> Result<(), PatchError> {
    match directive(patch, trail)? {
        Directive::Delete => {
            target.clear();
            return Ok(());
        }
        Directive::Replace => target.clear(),
        Directive::Merge => {}
    }
    retain_keys(target, patch, trail)?;
    let orders = orders(target, patch, node, trail)?;
    for (name, value) in patch {
        let here = Trail::Field(&trail, name);
        let field = node.and_then(|node| node.field(name));
        if is_directive(name) {
            continue;
        }
        match (target.get_mut(name), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Value::Object(target)), Value::Object(patch)) => merge_object(target, patch, field, here)?,
            (Some(Value::Array(target)), Value::Array(patch)) if merges(field) => {
                merge_list(target, patch, field, here)?;
            }
            _ => {
                target.insert(name.clone(), fresh(value, field, here)?);
            }
        }
    }
    for (name, values) in patch {
        let Some(list) = name.strip_prefix(DELETE_VALUES) else { continue };
        let Value::Array(values) = values else {
            return Err(malformed(Trail::Field(&trail, name), "must be a list of values"));
        };
        let values: BTreeSet<String> = values.iter().map(Value::to_string).collect();
        if let Some(Value::Array(target)) = target.get_mut(list) {
            target.retain(|entry| !values.contains(&entry.to_string()));
        }
    }
    for (list, order) in orders {
        if let Some(Value::Array(target)) = target.get_mut(list) {
            order.arrange(target);
        }
    }
    Ok(())
}

#[derive(PartialEq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>, trail: Trail<'_>) -> Result<Directive, PatchError> {
    match patch.get(PATCH).map(Value::as_str) {
        None | Some(Some("merge")) => Ok(Directive::Merge),
        Some(Some("replace")) => Ok(Directive::Replace),
        Some(Some("delete")) => Ok(Directive::Delete),
        Some(_) => Err(malformed(Trail::Field(&trail, PATCH), "must be merge, replace or delete")),
    }
}

fn retain_keys(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    trail: Trail<'_>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let here = Trail::Field(&trail, RETAIN_KEYS);
    let Value::Array(keys) = keys else { return Err(malformed(here, "must be a list of names")) };
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let stray = patch
        .iter()
        .find(|(name, value)| !value.is_null() && !is_directive(name) && !keys.contains(name.as_str()));
    if let Some((name, _)) = stray {
        return Err(malformed(
            here,
            &format!("the patch sets {name:?}, which is not among the keys to retain"),
        ));
    }
    target.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// Whether lists here merge, by the schema.
fn merges(node: Option<&Node>) -> bool {
    node.and_then(|node| node.patch.as_ref()).is_some_and(|patch| patch.merge)
}

fn merge_key(node: Option<&Node>) -> Option<&str> {
    node.and_then(|node| node.patch.as_ref()).and_then(|patch| patch.merge_key.as_deref())
}

/// What tells a list entry apart: its key field, or itself if it is a scalar.
fn identity(entry: &Value, key: Option<&str>) -> Option<String> {
    match (entry, key) {
        (Value::Object(fields), Some(key)) => fields.get(key).map(Value::to_string),
        (Value::Object(_) | Value::Array(_), _) => None,
        (scalar, _) => Some(scalar.to_string()),
    }
}

fn merge_list(
    target: &mut Vec<Value>,
    patch: &[Value],
    node: Option<&Node>,
    trail: Trail<'_>,
) -> Result<(), PatchError> {
    let item = node.and_then(Node::item);
    let key = merge_key(node);
    let server: Vec<Option<String>> = target.iter().map(|entry| identity(entry, key)).collect();
    let mut deleted = BTreeSet::new();
    let mut changes = Vec::new();
    for (index, entry) in patch.iter().enumerate() {
        let here = Trail::Index(&trail, index);
        let Value::Object(fields) = entry else {
            changes.push((index, entry, identity(entry, key)));
            continue;
        };
        let directive = directive(fields, here)?;
        if directive == Directive::Replace {
            // One such entry makes the whole list the new one.
            *target = fresh_list(patch, item, trail)?;
            return Ok(());
        }
        let Some(identity) = identity(entry, key) else {
            let why = match key {
                Some(key) => format!("the entry does not contain the merge key {key:?}"),
                None => "a list of objects without a merge key cannot be merged".to_owned(),
            };
            return Err(malformed(here, &why));
        };
        if directive == Directive::Delete {
            deleted.insert(identity);
        } else {
            changes.push((index, entry, Some(identity)));
        }
    }
    target.retain(|entry| identity(entry, key).is_none_or(|identity| !deleted.contains(&identity)));
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, entry) in target.iter().enumerate() {
        if let Some(identity) = identity(entry, key) {
            places.entry(identity).or_insert(place);
        }
    }
    let mut wanted = Vec::new();
    for (index, entry, identity) in changes {
        let here = Trail::Index(&trail, index);
        let place = identity.as_ref().and_then(|identity| places.get(identity)).copied();
        match (place.and_then(|place| target.get_mut(place)), entry) {
            (Some(Value::Object(target)), Value::Object(patch)) => merge_object(target, patch, item, here)?,
            (Some(_), _) => {}
            (None, _) => {
                if let Some(identity) = &identity {
                    places.insert(identity.clone(), target.len());
                }
                target.push(fresh(entry, item, here)?);
            }
        }
        wanted.push(identity);
    }
    Order { wanted: positions(wanted), server: positions(server), key: key.map(str::to_owned) }
        .arrange(target);
    Ok(())
}

/// A value that is put where nothing was: without directives, and without nulls.
fn fresh(value: &Value, node: Option<&Node>, trail: Trail<'_>) -> Result<Value, PatchError> {
    match value {
        Value::Object(patch) => {
            let mut out = Map::new();
            merge_object(&mut out, patch, node, trail)?;
            Ok(Value::Object(out))
        }
        Value::Array(list) => fresh_list(list, node.and_then(Node::item), trail).map(Value::Array),
        other => Ok(other.clone()),
    }
}

fn fresh_list(list: &[Value], item: Option<&Node>, trail: Trail<'_>) -> Result<Vec<Value>, PatchError> {
    let mut out = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        let here = Trail::Index(&trail, index);
        if let Value::Object(fields) = entry {
            let only_directive = fields.len() == 1 && fields.contains_key(PATCH);
            if directive(fields, here)? == Directive::Delete || only_directive {
                continue;
            }
        }
        out.push(fresh(entry, item, here)?);
    }
    Ok(out)
}

/// In which order a list is to be.
struct Order {
    /// Entries that the patch names, in its order.
    wanted: BTreeMap<String, usize>,
    /// The order before the patch.
    server: BTreeMap<String, usize>,
    key: Option<String>,
}

fn positions(order: impl IntoIterator<Item = Option<String>>) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for (position, identity) in order.into_iter().enumerate() {
        if let Some(identity) = identity {
            out.entry(identity).or_insert(position);
        }
    }
    out
}

/// The orders that a patch sets, by the name of the list.
fn orders<'a>(
    target: &Map<String, Value>,
    patch: &'a Map<String, Value>,
    node: Option<&Node>,
    trail: Trail<'_>,
) -> Result<Vec<(&'a str, Order)>, PatchError> {
    let mut out = Vec::new();
    for (name, wanted) in patch {
        let Some(list) = name.strip_prefix(SET_ORDER) else { continue };
        let Value::Array(wanted) = wanted else {
            return Err(malformed(Trail::Field(&trail, name), "must be a list"));
        };
        let key = merge_key(node.and_then(|node| node.field(list)));
        let identities = |entries: &[Value]| positions(entries.iter().map(|entry| identity(entry, key)));
        let server =
            target.get(list).and_then(Value::as_array).map(|list| identities(list)).unwrap_or_default();
        out.push((list, Order { wanted: identities(wanted), server, key: key.map(str::to_owned) }));
    }
    Ok(out)
}

impl Order {
    /// Named entries in the wanted order; the others keep theirs, each before the first named one that it stood before.
    fn arrange(&self, list: &mut Vec<Value>) {
        let mut named = Vec::new();
        let mut others = Vec::new();
        for entry in std::mem::take(list) {
            let identity = identity(&entry, self.key.as_deref());
            let server = identity.as_ref().and_then(|identity| self.server.get(identity)).copied();
            match identity.as_ref().and_then(|identity| self.wanted.get(identity)) {
                Some(wanted) => named.push((*wanted, server, entry)),
                None => others.push((server, entry)),
            }
        }
        named.sort_by_key(|(wanted, ..)| *wanted);
        others.sort_by_key(|(server, _)| server.unwrap_or(usize::MAX));
        let mut others = others.into_iter().peekable();
        for (_, place, entry) in named {
            while let Some((_, other)) =
                others.next_if(|(server, _)| server.zip(place).is_some_and(|(s, p)| s < p))
            {
                list.push(other);
            }
            list.push(entry);
        }
        list.extend(others.map(|(_, other)| other));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let string = json!({"type": "string"});
        Schema::parse_built_in(&json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": string},
                "finalizers": {"type": "array", "items": string, "x-kubernetes-patch-strategy": "merge"},
            }},
            "spec": {"type": "object", "properties": {
                "containers": {
                    "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                    "items": {"type": "object", "properties": {"name": string, "image": string, "args": {"type": "array", "items": string}}},
                },
                "tolerations": {"type": "array", "items": {"type": "object", "properties": {"key": string}}},
                "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {
                    "type": string, "rollingUpdate": {"type": "object", "properties": {"maxSurge": {"type": "integer"}}},
                }},
            }},
        }}))
        .expect("readable")
    }

    fn patched(target: Value, patch: Value) -> Value {
        let mut out = target;
        strategic_patch(&mut out, &patch, &schema()).unwrap_or_else(|error| panic!("{patch}: {error}"));
        out
    }

    fn spec(spec: Value) -> Value {
        json!({"spec": spec})
    }

    /// "Use a strategic merge patch to update a Deployment" of the documentation, with its order.
    #[test]
    fn the_documented_containers_merge_and_tolerations_do_not() {
        let live = spec(
            json!({"containers": [{"name": "patch-demo-ctr", "image": "nginx"}], "tolerations": [{"key": "dedicated"}]}),
        );
        let patch = spec(json!({"containers": [{"name": "patch-demo-ctr-2", "image": "redis"}]}));
        let live = patched(live, patch);
        assert_eq!(
            live["spec"]["containers"],
            json!([{"name": "patch-demo-ctr-2", "image": "redis"}, {"name": "patch-demo-ctr", "image": "nginx"}])
        );
        let live = patched(live, spec(json!({"tolerations": [{"key": "disktype"}]})));
        assert_eq!(live["spec"]["tolerations"], json!([{"key": "disktype"}]));
    }

    /// "Use strategic merge patch to update a Deployment using the retainKeys strategy".
    #[test]
    fn the_documented_strategy_retains_its_keys() {
        let live = spec(json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}));
        let out =
            patched(live.clone(), spec(json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}})));
        assert_eq!(out, spec(json!({"strategy": {"type": "Recreate"}})));
        let mut same = live.clone();
        let stray = spec(json!({"strategy": {"$retainKeys": ["type"], "other": 1}}));
        assert!(strategic_patch(&mut same, &stray, &schema()).is_err());
        assert_eq!(same, live);
    }

    #[test]
    fn directives_do_what_they_say() {
        let live = || {
            spec(
                json!({"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}, {"name": "c"}]}),
            )
        };
        let containers =
            |patch: Value| patched(live(), spec(json!({"containers": patch})))["spec"]["containers"].clone();
        assert_eq!(
            containers(json!([{"name": "b", "image": null, "args": ["y"]}])),
            json!([{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "args": ["y"]}, {"name": "c"}])
        );
        assert_eq!(
            containers(json!([{"name": "a", "$patch": "delete"}, {"name": "none", "$patch": "delete"}])),
            json!([{"name": "b", "image": "2"}, {"name": "c"}])
        );
        assert_eq!(containers(json!([{"$patch": "replace"}, {"name": "z"}])), json!([{"name": "z"}]));
        assert_eq!(containers(json!([{"name": "b", "$patch": "merge"}])), live()["spec"]["containers"]);
        assert_eq!(
            patched(live(), spec(json!({"$patch": "replace", "strategy": {"type": "x"}}))),
            spec(json!({"strategy": {"type": "x"}}))
        );
        assert_eq!(patched(live(), spec(json!({"$patch": "delete"}))), spec(json!({})));
        // Where nothing was, directives leave nothing behind.
        let new = patched(
            json!({}),
            spec(
                json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": null}], "$setElementOrder/containers": [{"name": "b"}]}),
            ),
        );
        assert_eq!(new, spec(json!({"containers": [{"name": "b"}]})));
    }

    #[test]
    fn order_is_set() {
        let live = spec(json!({"containers": [{"name": "a"}, {"name": "s"}, {"name": "b"}]}));
        let out = patched(
            live.clone(),
            spec(json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})),
        );
        let names = |value: &Value| -> String {
            value["spec"]["containers"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|one| one["name"].as_str())
                .collect()
        };
        assert_eq!(names(&out), "sba");
        let patch = json!({"$setElementOrder/containers": [{"name": "a"}, {"name": "n"}, {"name": "b"}], "containers": [{"name": "n"}]});
        assert_eq!(names(&patched(live, spec(patch))), "ansb");
    }

    #[test]
    fn lists_of_scalars_are_sets() {
        let meta = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        assert_eq!(patched(meta(json!(["a", "b"])), meta(json!(["c", "a"]))), meta(json!(["c", "a", "b"])));
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"], "$setElementOrder/finalizers": ["c", "b"]}});
        assert_eq!(patched(meta(json!(["a", "b", "c"])), patch), meta(json!(["c", "b"])));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (patch, expected) in [
            (
                spec(json!({"containers": [{"image": "x"}]})),
                "spec.containers[0]: the entry does not contain the merge key \"name\"",
            ),
            (spec(json!({"$patch": "jump"})), "spec.$patch: must be merge, replace or delete"),
            (
                spec(json!({"$setElementOrder/containers": 1})),
                "spec.$setElementOrder/containers: must be a list",
            ),
        ] {
            let mut live = spec(json!({"containers": [{"name": "a"}]}));
            let error = strategic_patch(&mut live, &patch, &schema()).expect_err("malformed");
            assert_eq!(error.to_string(), format!("the patch is malformed: {expected}"));
        }
    }

    proptest! {
        #[test]
        fn without_directives_and_lists_it_is_a_merge_patch(a in crate::testing::json(), b in crate::testing::json()) {
            // Nulls inside lists are the one difference that is left: they are dropped here, and kept there.
            fn without_nulls(value: Value, in_list: bool) -> Value {
                match value {
                    Value::Object(map) => {
                        let map = map.into_iter().filter(|(_, v)| !(in_list && v.is_null()));
                        map.map(|(k, v)| (k, without_nulls(v, in_list))).collect()
                    }
                    Value::Array(list) => list.into_iter().map(|v| without_nulls(v, true)).collect(),
                    other => other,
                }
            }
            let (mut one, b) = (json!({"a": a, "b": 1}), json!({"a": without_nulls(b, false), "b": null}));
            let mut other = one.clone();
            strategic_patch(&mut one, &b, &schema()).map_err(|error| TestCaseError::fail(error.to_string()))?;
            crate::patch::merge_patch(&mut other, &b).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(one, other);
        }
    }
}
