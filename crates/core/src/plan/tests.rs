//! Plans against a world in memory that applies as a server does.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::apply::{self, Manager};
use crate::{DesiredState, Error, GroupVersionKind, Kind, Object, ObjectRef, Ownership};

#[derive(Default)]
struct Memory {
    objects: BTreeMap<ObjectRef, Value>,
    next: u64,
    owner: Option<Ownership>,
    /// What was done, in order.
    log: Vec<String>,
}

fn instance(name: &str) -> Object {
    Object::from_value(&json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}")}}))
    .unwrap()
}

fn owner(name: &str) -> Ownership {
    Ownership::of(&instance(name), "test").unwrap()
}

impl World for Memory {
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Kind> {
        let (plural, namespaced) = match &*gvk.kind {
            "ConfigMap" => ("configmaps", true),
            "Job" => ("jobs", true),
            "Secret" => ("secrets", true),
            "Namespace" => ("namespaces", false),
            "CustomResourceDefinition" => ("customresourcedefinitions", false),
            _ => return None,
        };
        Some(Kind { gvk: gvk.clone(), plural: plural.into(), namespaced })
    }

    fn live(&self, _: &Kind, object: &ObjectRef) -> Option<Object> {
        self.objects.get(object).map(|v| Object::from_value(v).unwrap())
    }

    fn owned(&self) -> Vec<(Kind, Object)> {
        let release = self.owner.as_ref().map(|o| &o.release);
        let objects = self.objects.values().map(|v| Object::from_value(v).unwrap());
        objects.filter(|o| o.release() == release).map(|o| (self.kind(&o.gvk()).unwrap(), o)).collect()
    }
}

impl Memory {
    fn of(name: &str) -> Self {
        Self { owner: Some(owner(name)), ..Self::default() }
    }

    fn plan(&self, desired: &DesiredState) -> Result<Plan, Error> {
        plan(desired, self.owner.as_ref().unwrap(), self, &PlanOptions::default())
    }

    fn execute(&mut self, plan: &Plan) {
        for action in plan.writes() {
            self.log.push(action.to_string());
            match &action.verb {
                Verb::Create { manifest } | Verb::Patch { manifest, .. } | Verb::Orphan { manifest, .. } => {
                    self.apply(manifest.value(), "horchestra");
                }
                Verb::Delete { .. } => {
                    self.objects.remove(&action.object);
                }
                Verb::Keep => {}
            }
        }
    }

    fn apply(&mut self, manifest: &Value, manager: &str) {
        let object = crate::Manifest::new(manifest.clone()).unwrap().reference();
        let manager = Manager {
            name: manager.into(),
            api_version: "v1".into(),
            subresource: None,
            time: "2026-01-01T00:00:00Z".into(),
        };
        let mut stored = apply::apply(self.objects.get(&object), manifest, None, &manager, true).unwrap();
        if stored["metadata"].get("uid").is_none() {
            self.next += 1;
            stored["metadata"]["uid"] = format!("uid-{}", self.next).into();
        }
        self.objects.insert(object, stored);
    }

    /// Plans and executes until nothing is left to do.
    fn converge(&mut self, desired: &DesiredState) -> Plan {
        for _ in 0..20 {
            let plan = self.plan(desired).unwrap();
            if plan.is_empty() {
                return plan;
            }
            self.execute(&plan);
        }
        panic!("does not converge: {}", self.plan(desired).unwrap());
    }
}

fn map(name: &str, data: &BTreeMap<String, String>) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn state(stages: &[BTreeMap<u8, BTreeMap<String, String>>]) -> DesiredState {
    let mut used = std::collections::BTreeSet::new();
    let mut desired = DesiredState::new();
    for stage in stages {
        for (name, data) in stage {
            if used.insert(*name) {
                desired = desired.with_value(map(&format!("m{name}"), data));
            }
        }
        desired = desired.then();
    }
    if used.is_empty() { DesiredState::nothing() } else { desired.checked().unwrap() }
}

fn stages() -> impl Strategy<Value = Vec<BTreeMap<u8, BTreeMap<String, String>>>> {
    let data = prop::collection::btree_map("[a-c]", "[xyz]", 0..3);
    prop::collection::vec(prop::collection::btree_map(0u8..6, data, 0..4), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// From any state to any other: afterwards the world is exactly as desired, and the next plan is empty.
    #[test]
    fn applying_a_plan_gives_the_desired_state(before in stages(), after in stages(), drift in prop::collection::btree_map(0u8..6, "[pq]", 0..3)) {
        let mut world = Memory::of("t");
        let first = state(&before);
        world.converge(&first);
        for (name, value) in drift {
            let object = ObjectRef::new("ConfigMap".parse().unwrap(), "default", format!("m{name}"));
            // A field of ours that somebody else changed; one that they added would be theirs to keep.
            if let Some(field) = world.objects.get_mut(&object).and_then(|o| o["data"].get_mut("a")) {
                *field = value.into();
            }
        }
        let second = state(&after);
        let plan = world.converge(&second);
        prop_assert!(plan.is_ready(), "{plan}");
        let wanted: BTreeMap<String, Value> =
            second.resources().map(|m| (m.name().to_owned(), m.value().get("data").cloned().unwrap_or_default())).collect();
        let have: BTreeMap<String, Value> = world
            .objects
            .iter()
            .map(|(o, v)| (o.name.to_string(), v.get("data").cloned().unwrap_or_else(|| json!({}))))
            .collect();
        prop_assert_eq!(wanted, have);
        prop_assert!(world.plan(&second).unwrap().is_empty());
    }

    /// Stages are applied first to last and removed last to first.
    #[test]
    fn stages_in_order_and_back(stages in stages()) {
        let mut world = Memory::of("t");
        let desired = state(&stages);
        world.converge(&desired);
        let stage_of = |line: &String| {
            let name = line.rsplit(':').next().unwrap();
            desired.stages().iter().position(|s| s.iter().any(|m| m.name() == name)).unwrap()
        };
        let created: Vec<usize> = world.log.iter().map(stage_of).collect();
        prop_assert!(created.is_sorted(), "{:?}", world.log);
        world.log.clear();
        world.converge(&DesiredState::nothing());
        let mut removed: Vec<usize> = world.log.iter().map(stage_of).collect();
        removed.reverse();
        prop_assert!(removed.is_sorted(), "{:?}", world.log);
        prop_assert!(world.objects.is_empty());
    }
}

fn one(name: &str) -> DesiredState {
    DesiredState::new().with_value(map(name, &BTreeMap::new()))
}

#[test]
fn nothing_is_pruned_unless_it_was_said() {
    let mut world = Memory::of("t");
    world.converge(&one("a"));
    let unsaid = DesiredState::new().status(json!({"message": "x"})).checked().unwrap();
    assert!(world.plan(&unsaid).unwrap().is_empty());
    assert!(DesiredState::new().checked().unwrap_err().to_string().contains("DesiredState::nothing()"));
    world.converge(&DesiredState::nothing());
    assert!(world.objects.is_empty());
}

#[test]
fn definitions_and_namespaces_are_orphaned_unless_asked() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "A", "plural": "as"}}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    let desired = DesiredState::new().with_value(crd).with_value(namespace);
    let mut world = Memory::of("t");
    // They are never ready here: nobody establishes them. They are applied all the same.
    let plan = world.plan(&desired).unwrap();
    world.execute(&plan);
    let plan = world.plan(&DesiredState::nothing()).unwrap();
    assert!(plan.writes().all(|a| matches!(a.verb, Verb::Orphan { .. })), "{plan}");
    world.execute(&plan);
    assert_eq!(world.objects.len(), 2);
    for object in world.objects.values() {
        assert_eq!(
            object["metadata"].get("annotations").filter(|a| !a.as_object().is_none_or(|m| m.is_empty())),
            None,
            "{object}"
        );
        assert!(
            object["metadata"].get("ownerReferences").is_none_or(|o| o.as_array().is_none_or(Vec::is_empty))
        );
    }
    let mut world = Memory::of("t");
    let plan = world.plan(&desired).unwrap();
    world.execute(&plan);
    let options = PlanOptions { prune_crds: true, prune_namespaces: true, ..PlanOptions::default() };
    let plan = plan_teardown(&world, &options);
    world.execute(&plan);
    assert!(world.objects.is_empty());
}

#[test]
fn definitions_and_namespaces_go_before_what_needs_them() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "A", "plural": "as"}}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"}});
    let world = Memory::of("t");
    let plan = world.plan(&DesiredState::new().with_value(thing.clone()).with_value(crd)).unwrap();
    assert_eq!(plan.writes().count(), 1, "{plan}");
    assert!(plan.held);
    let error = world.plan(&DesiredState::new().with_value(thing)).unwrap_err().to_string();
    assert!(error.contains("no matches for kind \"A\" in version \"example.com/v1\""), "{error}");
}

#[test]
fn another_releases_object_is_a_conflict() {
    let mut world = Memory::of("a");
    world.converge(&one("m"));
    world.owner = Some(owner("b"));
    let error = world.plan(&one("m")).unwrap_err();
    assert!(
        matches!(&error, Error::Conflict(m) if m.contains("already owned by \"default/example.com.Thing.default.a\"")),
        "{error}"
    );
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    let world = Memory::of("t");
    let twice =
        DesiredState::new().with_value(map("m", &BTreeMap::new())).with_value(map("m", &BTreeMap::new()));
    assert!(world.plan(&twice).unwrap_err().to_string().starts_with("default/ConfigMap:m: "));
    let mut elsewhere = map("m", &BTreeMap::new());
    elsewhere["metadata"]["namespace"] = "other".into();
    let error = world.plan(&DesiredState::new().with_value(elsewhere)).unwrap_err().to_string();
    assert!(
        error.contains("Multiple namespaces detected (if desired enable multinamespace releases)"),
        "{error}"
    );
    assert!(error.contains("other/ConfigMap:m"), "{error}");
    let nameless =
        DesiredState::new().with_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}));
    assert!(nameless.checked().unwrap_err().to_string().contains("metadata.name"));
}

#[test]
fn values_of_secrets_are_not_in_a_plan() {
    let secret = |p: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": p}});
    let mut world = Memory::of("t");
    let create = world.plan(&DesiredState::new().with_value(secret("hunter2"))).unwrap();
    world.execute(&create);
    let patch = world.plan(&DesiredState::new().with_value(secret("hunter3"))).unwrap();
    assert_eq!(patch.writes().count(), 1);
    for plan in [create, patch] {
        let text = format!("{plan}{plan:?}{}", serde_json::to_string(&plan).unwrap());
        for value in ["hunter2", "hunter3", "aHVudGVyMg==", "aHVudGVyMw=="] {
            assert!(!text.contains(value), "{text}");
        }
    }
}

#[test]
fn a_field_that_is_no_longer_applied_is_a_change_and_others_fields_are_not() {
    let data =
        |keys: &[&str]| keys.iter().map(|k| ((*k).to_owned(), "1".to_owned())).collect::<BTreeMap<_, _>>();
    let mut world = Memory::of("t");
    world.converge(&DesiredState::new().with_value(map("m", &data(&["a", "b"]))));
    world.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": {"theirs": "2"}}), "somebody");
    let plan = world.plan(&DesiredState::new().with_value(map("m", &data(&["a"])))).unwrap();
    let [Action { verb: Verb::Patch { changes, .. }, .. }] = &plan.actions[..] else { panic!("{plan}") };
    assert_eq!(changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["data.b: \"1\" is removed"]);
    world.execute(&plan);
    let live = world.objects.values().next().unwrap();
    assert_eq!(live["data"], json!({"a": "1", "theirs": "2"}));
}
