//! Applying and updating.

use serde_json::{Map, Value};

use super::compare::Comparison;
use super::conflict::{ApplyError, Conflict};
use super::manager::Manager;
use super::merge::merge;
use super::owned::{applied_fields, fields, with_parents};
use super::remove::remove;
use super::scope::{Scope, keep_server_set, unowned};
use crate::field_error::FieldError;
use crate::field_path::FieldPath;
use crate::json::{Limits, depth_within};
use crate::managed_fields::{FieldSet, ManagedFields, ManagerEntry, Operation};
use crate::schema::{Node, Schema};

const OWNERS: &str = "managedFields";
/// Who owns what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Who owns what the oldest of too many updaters owned.
const ANCIENT: &str = "ancient-changes";
/// Most updaters that are told apart, as in the kube-apiserver.
const MAX_UPDATERS: usize = 10;

/// The object after a server-side apply: what `manager` applies now, without what it applied before and nobody else
/// owns. An apply that changes nothing answers the very same object.
///
/// `live` is the object as it is, or None to create it. Without a schema lists are atomic and maps granular. The caller
/// validates the answer, and checks preconditions (uid, resourceVersion) against `applied`.
///
/// # Errors
/// [`ApplyError::Conflicts`] if other managers own fields with other values, unless `force` is set;
/// [`ApplyError::Invalid`] if `applied` has managed fields, a list without telling keys, or is nested too deeply.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    schema: Option<&Schema>,
    manager: &Manager,
    force: bool,
) -> Result<Value, ApplyError> {
    let schema = schema.unwrap_or_else(|| Schema::untyped());
    let node = Some(schema.root());
    let scope = Scope::of(manager, schema);
    let config = config(applied, scope)?;
    let set = applied_fields(&config, node).map_err(ApplyError::Invalid)?;
    let set = set.recursive_difference(&scope.ignored([Some(&config), live])).difference(unowned());

    let before = live.map(owners).unwrap_or_default();
    let mut owners = before.clone();
    if owners.is_empty()
        && let Some(live) = live
    {
        let first = Manager { name: BEFORE_FIRST_APPLY.to_owned(), subresource: None, ..manager.clone() };
        let found = Comparison::of(None, Some(&without_owners(live)), node).added;
        let found = found.recursive_difference(&scope.ignored([Some(live), None])).difference(unowned());
        owners.entries_mut().push(first.entry(Operation::Update, found));
    }
    let mut own = manager.entry(Operation::Apply, set);
    let place = owners.entries().iter().position(|entry| entry.same_manager(&own));
    let last = place.map(|place| owners.entries_mut().remove(place));

    let mut merged = live.map_or_else(|| config.clone(), |live| merge(live, &config, node));
    if let Some(last) = &last {
        merged = prune(merged, &last.fields, &own.fields, owners.entries(), node);
    }
    keep_server_set(live, &mut merged);

    let comparison = Comparison::of(live, Some(&merged), node).without(&scope.ignored([live, Some(&merged)]));
    let conflicts = take_over(&mut owners, &comparison, force);
    if !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    if let Some(last) = last.filter(|last| last.fields == own.fields) {
        // Nothing new is owned; the time tells when that came to be, unless the object changes now.
        if live.is_some_and(|live| same_object(live, &merged)) {
            own.time = last.time;
        }
    }
    owners.entries_mut().push(own);
    owners.entries_mut().retain(|entry| !entry.fields.is_empty());
    Ok(finish(live, merged, &before, &owners))
}

/// The object after any other write: `new`, with its managed fields brought up to date. What `manager` changed it now
/// owns, alone.
///
/// `live` is the object as it was, or None if it is new. Managed fields in `new` count only if they are well-formed and
/// not empty; a list of one empty entry (`[{}]`) resets them. An object without managed fields stays so until somebody
/// applies.
#[must_use]
pub fn update(live: Option<&Value>, new: Value, schema: Option<&Schema>, manager: &Manager) -> Value {
    let schema = schema.unwrap_or_else(|| Schema::untyped());
    let node = Some(schema.root());
    let scope = Scope::of(manager, schema);
    let before = live.map(owners).unwrap_or_default();
    let (mut owners, reset) = asked_owners(&before, &new, manager);
    if reset || (owners.is_empty() && live.is_some()) {
        return with_owners(new, None);
    }
    let old_bare = live.map(without_owners);
    let bare = without_owners(&new);
    let comparison = Comparison::of(old_bare.as_ref(), Some(&bare), node);
    let comparison = comparison.without(&scope.ignored([live, Some(&new)]));
    take_over(&mut owners, &comparison, true);
    let taken = comparison.modified.union(&comparison.added).difference(unowned());
    if !taken.is_empty() {
        let mut own = manager.entry(Operation::Update, taken);
        if let Some(place) = owners.entries().iter().position(|entry| entry.same_manager(&own)) {
            let last = owners.entries_mut().remove(place);
            own.fields = own.fields.union(&last.fields);
        }
        owners.entries_mut().push(own);
    }
    cap_updaters(&mut owners);
    finish(live, bare, &before, &owners)
}

/// What is applied: an object, without managed fields, in the reach of the writer.
fn config(applied: &Value, scope: Scope) -> Result<Value, ApplyError> {
    let Value::Object(applied) = applied else {
        return Err(ApplyError::Invalid(FieldError::type_invalid(
            FieldPath::root(),
            applied,
            "must be an object",
        )));
    };
    let managed = applied.get("metadata").and_then(|metadata| metadata.get(OWNERS));
    if managed
        .is_some_and(|managed| !managed.is_null() && managed.as_array().is_none_or(|list| !list.is_empty()))
    {
        let at = FieldPath::of(["metadata", "managedFields"]);
        return Err(ApplyError::Invalid(FieldError::forbidden(at, "must be nil")));
    }
    let config = without_owners(&Value::Object(scope.reach(applied)));
    if !depth_within(&config, Limits::MAX_DEPTH) {
        let detail = format!("nested more than {} deep", Limits::MAX_DEPTH);
        return Err(ApplyError::Invalid(FieldError::forbidden(FieldPath::root(), detail)));
    }
    Ok(config)
}

/// Removes what was applied last time, is not applied now, and is owned by nobody else.
fn prune(
    merged: Value,
    last: &FieldSet,
    now: &FieldSet,
    others: &[ManagerEntry],
    node: Option<&Node>,
) -> Value {
    if last.difference(now).is_empty() {
        return merged;
    }
    let last = with_parents(last, node);
    let owned = others.iter().fold(now.clone(), |owned, entry| owned.union(&entry.fields));
    let owned = with_parents(&owned, node);
    let all = with_parents(&fields(&merged, node), node);
    let without =
        |set: &FieldSet| remove(&merged, set, &owned, node).unwrap_or_else(|| Value::Object(Map::new()));

    // Without all that was applied last time; then with what somebody owns; then with what nobody ever applied.
    let bare = without(&last);
    let kept = with_parents(&fields(&bare, node), node).union(&owned);
    let kept = without(&all.difference(&kept));
    let kept = with_parents(&fields(&kept, node), node);
    without(&all.difference(&kept).intersection(&last))
}

/// Takes changed and removed fields from all managers. Unless forced, changed fields that somebody owns are conflicts,
/// and nothing is taken.
fn take_over(owners: &mut ManagedFields, comparison: &Comparison, force: bool) -> Vec<Conflict> {
    let changed = comparison.modified.union(&comparison.added);
    if !force {
        let conflicts: Vec<Conflict> = owners
            .entries()
            .iter()
            .flat_map(|entry| Conflict::of(entry, &entry.fields.intersection(&changed)))
            .collect();
        if !conflicts.is_empty() {
            return conflicts;
        }
    }
    for entry in owners.entries_mut() {
        entry.fields = entry.fields.difference(&changed).difference(&comparison.removed);
    }
    owners.entries_mut().retain(|entry| !entry.fields.is_empty());
    Vec::new()
}

/// The owners that an update starts from, and whether it asks to forget all.
fn asked_owners(before: &ManagedFields, new: &Value, manager: &Manager) -> (ManagedFields, bool) {
    let asked = new.get("metadata").and_then(|metadata| metadata.get(OWNERS));
    let reset = asked
        .and_then(Value::as_array)
        .is_some_and(|list| matches!(list.as_slice(), [Value::Object(only)] if only.is_empty()));
    if manager.subresource.is_some() || reset {
        return (before.clone(), reset && manager.subresource.is_none());
    }
    match ManagedFields::from_json(asked) {
        Ok(asked) if !asked.is_empty() => (asked, false),
        _ => (before.clone(), false),
    }
}

/// Merges the oldest updaters into one until there are few enough.
fn cap_updaters(owners: &mut ManagedFields) {
    let updaters =
        |owners: &ManagedFields| owners.entries().iter().filter(|e| e.operation == Operation::Update).count();
    while updaters(owners) > MAX_UPDATERS {
        let candidates = owners.entries().iter().enumerate();
        let candidates = candidates.filter(|(_, e)| e.operation == Operation::Update && e.manager != ANCIENT);
        let oldest = candidates.min_by(|(_, a), (_, b)| a.time.cmp(&b.time)).map(|(place, _)| place);
        let Some(oldest) = oldest else { return };
        let mut entry = owners.entries_mut().remove(oldest);
        ANCIENT.clone_into(&mut entry.manager);
        entry.subresource.clear();
        match owners.entries_mut().iter_mut().find(|other| other.same_manager(&entry)) {
            Some(ancient) => {
                ancient.fields = ancient.fields.union(&entry.fields);
                ancient.time = ancient.time.take().max(entry.time);
            }
            None => owners.entries_mut().push(entry),
        }
    }
}

fn owners(object: &Value) -> ManagedFields {
    let managed = object.get("metadata").and_then(|metadata| metadata.get(OWNERS));
    // What cannot be read says nothing about owners.
    ManagedFields::from_json(managed).unwrap_or_default()
}

fn without_owners(object: &Value) -> Value {
    with_owners(object.clone(), None)
}

fn with_owners(mut object: Value, owners: Option<Value>) -> Value {
    let metadata = object.as_object_mut().and_then(|fields| match owners {
        Some(_) => Some(fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()))),
        None => fields.get_mut("metadata"),
    });
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        match owners {
            Some(owners) => metadata.insert(OWNERS.to_owned(), owners),
            None => metadata.remove(OWNERS),
        };
    }
    object
}

/// Equal, whoever owns what.
fn same_object(one: &Value, other: &Value) -> bool {
    fn same(
        one: &Map<String, Value>,
        other: &Map<String, Value>,
        except: &str,
        equal: fn(&Value, &Value) -> bool,
    ) -> bool {
        let count = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(except));
        let pair = |(name, value): (&String, &Value)| name == except || other.get(name) == Some(value);
        count(one) == count(other)
            && one.iter().all(pair)
            && match (one.get(except), other.get(except)) {
                (Some(one), Some(other)) => equal(one, other),
                (one, other) => one.is_some() == other.is_some() || except == OWNERS,
            }
    }
    let metadata = |one: &Value, other: &Value| match (one, other) {
        (Value::Object(one), Value::Object(other)) => same(one, other, OWNERS, |_, _| true),
        _ => one == other,
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => same(one, other, "metadata", metadata),
        _ => one == other,
    }
}

/// The object with its owners; the very same one if nothing changed but times.
fn finish(live: Option<&Value>, new: Value, before: &ManagedFields, owners: &ManagedFields) -> Value {
    if let Some(live) = live
        && before.same_owners(owners)
        && same_object(live, &new)
    {
        return live.clone();
    }
    with_owners(new, (!owners.is_empty()).then(|| owners.to_json()))
}
