//! How a plan is made.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use serde_json::{Value, json};

use super::{Action, Plan, Verb, differences};
use crate::owner::stage_of;
use crate::readiness::{Readiness, readiness};
use crate::{
    DesiredState, Error, Extent, GroupKind, GroupVersionKind, Kind, Manifest, Object, ObjectRef, Ownership,
    Result,
};

/// How many objects one desired state may have.
pub(crate) const MAX_OBJECTS: usize = 10_000;

/// The world as a plan needs to see it.
pub trait World {
    /// How a kind is served, if it is.
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Kind>;
    /// An object as it is.
    fn live(&self, kind: &Kind, object: &ObjectRef) -> Option<Object>;
    /// Everything that carries the mark of this release, in any order.
    fn owned(&self) -> Vec<(Kind, Object)>;
    /// Whether the server has already said that this is what the manifest means. It may write a
    /// value in another way (`1000m` is `1`), which looks like a difference and is none.
    fn is_settled(&self, _manifest: &Manifest, _live: &Object) -> bool {
        false
    }
}

/// Whether existing objects are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    /// Never: an object that exists and is not ours is a conflict.
    Never,
    /// Objects that no release owns.
    Unowned,
    /// Also those of another release.
    Any,
}

/// How a plan is made.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The field manager that applies it.
    pub manager: String,
    /// Whether existing objects are taken over.
    pub adopt: Adopt,
    /// Whether objects may be in other namespaces than the release.
    pub cross_namespace: bool,
    /// Whether CustomResourceDefinitions that are no longer desired are deleted instead of orphaned.
    pub prune_crds: bool,
    /// The same for Namespaces.
    pub prune_namespaces: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            manager: "horchestra".into(),
            adopt: Adopt::Unowned,
            cross_namespace: false,
            prune_crds: false,
            prune_namespaces: false,
        }
    }
}

fn is_crd(kind: &GroupKind) -> bool {
    kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

fn is_namespace(kind: &GroupKind) -> bool {
    kind.is("", "Namespace")
}

/// Plans how to get from the world to the desired state.
///
/// Stages are applied in order, each once everything before it is ready. What is owned and not
/// desired goes after the last stage was applied, in reverse order of stages.
pub fn plan(
    desired: &DesiredState,
    ownership: &Ownership,
    world: &dyn World,
    options: &PlanOptions,
) -> Result<Plan> {
    let mut plan = Plan { waiting: desired.waiting().to_vec(), ..Plan::default() };
    let stages = prepare(desired, ownership, world, options)?;
    let wanted: BTreeSet<ObjectRef> = stages.iter().flatten().map(|(_, m)| m.reference()).collect();

    for (index, stage) in stages.into_iter().enumerate() {
        if plan.held {
            break;
        }
        let mut complete = true;
        for (kind, manifest) in stage {
            let object = manifest.reference();
            let Some(kind) = kind else {
                // Its definition is in an earlier stage that is applied but not served yet.
                plan.waiting.push(format!("{} to be served by the API server", manifest.gvk()));
                complete = false;
                continue;
            };
            let live = world.live(&kind, &object);
            let verb = verb(&object, manifest, live.as_ref(), ownership, world, options)?;
            match (&verb, &live) {
                (Some(Verb::Keep), Some(live)) => match readiness(&live.to_value()) {
                    Readiness::Ready => {}
                    Readiness::NotReady(why) => {
                        complete = false;
                        plan.waiting.push(format!("{object}: {why}"));
                    }
                    Readiness::Failed(why) => {
                        complete = false;
                        plan.failed.push(format!("{object}: {why}"));
                    }
                },
                (None, _) => {
                    complete = false;
                    plan.waiting.push(format!("{object} is still being deleted"));
                }
                _ => complete = false,
            }
            if let Some(verb) = verb {
                plan.actions.push(Action { object, kind, stage: index, verb });
            }
        }
        plan.held = !complete;
    }
    // The last stage has nothing behind it to hold back, so being applied is enough to prune.
    let applied_all = wanted.iter().all(|w| plan.actions.iter().any(|a| a.object == *w));
    plan.held = false;
    match desired.extent() {
        Extent::Unsaid => {}
        _ if applied_all => prune(&mut plan, &wanted, world, options),
        _ => plan.held = true,
    }
    Ok(plan)
}

/// Plans the removal of everything that a release owns.
pub fn plan_teardown(world: &dyn World, options: &PlanOptions) -> Plan {
    let mut plan = Plan::default();
    prune(&mut plan, &BTreeSet::new(), world, options);
    plan
}

type Stage = Vec<(Option<Kind>, Manifest)>;

/// Resolves kinds, fills in namespaces, marks ownership, hoists what others need, and refuses what
/// cannot be meant.
fn prepare(
    desired: &DesiredState,
    ownership: &Ownership,
    world: &dyn World,
    options: &PlanOptions,
) -> Result<Vec<Stage>> {
    let count = desired.resources().count();
    if count > MAX_OBJECTS {
        return Err(Error::invalid(
            "desired state",
            format!("has {count} objects; the limit is {MAX_OBJECTS}, split it over several resources"),
        ));
    }
    let defined = definitions(desired);
    let mut stages: Vec<Stage> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut strangers = Vec::new();
    for stage in desired.stages() {
        let mut first = Vec::new();
        let mut rest = Vec::new();
        for manifest in stage {
            let gvk = manifest.gvk();
            let kind = world.kind(&gvk);
            let namespaced = match (&kind, defined.get(&gvk.group_kind())) {
                (Some(kind), _) => kind.namespaced,
                (None, Some(namespaced)) => *namespaced,
                (None, None) => {
                    return Err(Error::invalid(
                        manifest.reference(),
                        format!(
                            "no matches for kind {:?} in version {:?}; the API server does not serve it",
                            &*gvk.kind,
                            gvk.api_version()
                        ),
                    ));
                }
            };
            let mut manifest = manifest.clone();
            if !namespaced {
                manifest.set_namespace("");
            } else if manifest.namespace().is_empty() {
                manifest.set_namespace(&ownership.release.namespace);
            } else if !options.cross_namespace && *manifest.namespace() != *ownership.release.namespace {
                strangers.push(format!(
                    "{}: namespace {:?} does not match target namespace {:?}",
                    manifest.reference(),
                    manifest.namespace(),
                    &*ownership.release.namespace
                ));
            }
            secret_data(manifest.value_mut());
            let object = manifest.reference();
            if object == ownership.instance {
                return Err(Error::invalid(
                    object,
                    "is the resource itself; set its status instead of returning it",
                ));
            }
            if !seen.insert(object.clone()) {
                return Err(Error::invalid(
                    object,
                    "is in the desired state twice; one object can only be one thing",
                ));
            }
            let target =
                if is_crd(&object.kind) || is_namespace(&object.kind) { &mut first } else { &mut rest };
            target.push((kind, manifest));
        }
        stages.extend([first, rest].into_iter().filter(|s| !s.is_empty()));
    }
    if !strangers.is_empty() {
        return Err(Error::invalid(
            "desired state",
            format!(
                "Multiple namespaces detected (if desired enable multinamespace releases): {}",
                strangers.join("; ")
            ),
        ));
    }
    for (index, stage) in stages.iter_mut().enumerate() {
        for (_, manifest) in stage {
            ownership.mark(manifest.value_mut(), index);
        }
    }
    Ok(stages)
}

/// The kinds that the desired state itself defines, and whether they live in namespaces.
fn definitions(desired: &DesiredState) -> BTreeMap<GroupKind, bool> {
    desired
        .resources()
        .filter(|m| is_crd(&m.gvk().group_kind()))
        .filter_map(|m| {
            let spec = m.value().get("spec")?;
            let kind = GroupKind::new(spec.get("group")?.as_str()?, spec.pointer("/names/kind")?.as_str()?);
            Some((kind, spec.get("scope").and_then(Value::as_str) != Some("Cluster")))
        })
        .collect()
}

/// Writes a Secret's `stringData` as the `data` that a server makes of it, so that it can be compared.
fn secret_data(manifest: &mut Value) {
    let is_secret = manifest.get("kind").and_then(Value::as_str) == Some("Secret")
        && manifest.get("apiVersion").and_then(Value::as_str) == Some("v1");
    let Some(map) = manifest.as_object_mut().filter(|_| is_secret) else { return };
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert_with(|| json!({}));
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            let encoded = text.as_str().map(|t| STANDARD.encode(t));
            data.insert(key, encoded.map_or(text, Value::String));
        }
    }
}

/// What to do about one desired object; none while its predecessor is still going away.
fn verb(
    object: &ObjectRef,
    manifest: Manifest,
    live: Option<&Object>,
    ownership: &Ownership,
    world: &dyn World,
    options: &PlanOptions,
) -> Result<Option<Verb>> {
    let Some(live) = live else { return Ok(Some(Verb::Create { manifest })) };
    if live.is_deleting() {
        return Ok(None);
    }
    let owner = live.release();
    let taken = match options.adopt {
        Adopt::Any => false,
        Adopt::Unowned => owner.is_some_and(|o| *o != ownership.release),
        Adopt::Never => owner != Some(&ownership.release),
    };
    if taken {
        let owner = owner.map(ToString::to_string).unwrap_or_default();
        return Err(Error::conflict(format!(
            "{object}: expected release {:?} but resource is already owned by {owner:?}; \
             rename one of the two, or delete the other release first",
            ownership.release.to_string()
        )));
    }
    let changes = differences(&live.to_value(), manifest.value(), &options.manager);
    let settled = changes.is_empty() || world.is_settled(&manifest, live);
    Ok(Some(if settled { Verb::Keep } else { Verb::Patch { manifest, changes } }))
}

/// Adds the removal of what is owned and not wanted: the highest stage now, the others when it is gone.
fn prune(plan: &mut Plan, wanted: &BTreeSet<ObjectRef>, world: &dyn World, options: &PlanOptions) {
    let mut stale: BTreeMap<usize, Vec<(Kind, Object)>> = BTreeMap::new();
    for (kind, object) in world.owned() {
        if !wanted.contains(&object.reference()) {
            stale.entry(stage_of(&object.to_value())).or_default().push((kind, object));
        }
    }
    let Some((stage, objects)) = stale.pop_last() else { return };
    for (kind, object) in objects {
        let reference = object.reference();
        if object.is_deleting() {
            plan.waiting.push(format!("{reference} to be gone"));
            plan.held = true;
            continue;
        }
        let uid = object.uid().to_owned();
        let orphan = (is_crd(&reference.kind) && !options.prune_crds)
            || (is_namespace(&reference.kind) && !options.prune_namespaces);
        let verb = if orphan {
            let bare = json!({
                "apiVersion": object.api_version(),
                "kind": &*reference.kind.kind,
                "metadata": {"name": &*reference.name, "namespace": &*reference.namespace},
            });
            match Manifest::new(bare) {
                Ok(mut manifest) => {
                    manifest.set_namespace(&reference.namespace);
                    Verb::Orphan { uid, manifest }
                }
                Err(_) => continue,
            }
        } else {
            Verb::Delete { uid }
        };
        plan.actions.push(Action { object: reference, kind, stage, verb });
    }
    if !stale.is_empty() {
        let count: usize = stale.values().map(Vec::len).sum();
        plan.waiting.push(format!("{count} more objects to be removed in earlier stages"));
        plan.held = true;
    }
}
