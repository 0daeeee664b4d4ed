//! Cases of the server-side apply page, of structured-merge-diff's rules, and properties.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ApplyError, Manager, apply, update};
use crate::managed_fields::{ManagedFields, Operation};
use crate::schema::Schema;

fn manager(name: &str) -> Manager {
    Manager {
        name: name.into(),
        api_version: "v1".into(),
        subresource: None,
        time: "2026-01-01T00:00:00Z".into(),
    }
}

fn later(name: &str) -> Manager {
    Manager { time: "2026-02-02T00:00:00Z".into(), ..manager(name) }
}

fn status(name: &str) -> Manager {
    Manager { subresource: Some("status".into()), ..manager(name) }
}

/// A kind with every way to merge.
fn schema() -> Schema {
    let string = json!({"type": "string"});
    Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "name": string,
            "struct": {"type": "object", "properties": {"a": string, "b": string}},
            "map": {"type": "object", "additionalProperties": string},
            "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string},
            "list": {"type": "array", "items": string},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": string},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "required": ["port"], "properties": {
                    "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": string,
                }},
            },
        }},
        "status": {"type": "object", "properties": {"phase": string}},
    }}))
    .expect("structural")
}

fn config(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Test", "metadata": {"name": "a"}, "spec": spec})
}

fn applied(live: Option<&Value>, spec: Value, who: &str) -> Value {
    apply(live, &config(spec), Some(&schema()), &manager(who), false).expect("no conflict")
}

fn conflicts(live: &Value, spec: Value, who: &str) -> Vec<(String, String)> {
    match apply(Some(live), &config(spec), Some(&schema()), &manager(who), false) {
        Err(ApplyError::Conflicts(conflicts)) => {
            conflicts.into_iter().map(|one| (one.manager, one.path)).collect()
        }
        other => panic!("no conflict: {other:?}"),
    }
}

/// What a manager owns, one path a line.
fn owned(object: &Value, name: &str) -> String {
    let managed = ManagedFields::from_json(object.pointer("/metadata/managedFields")).expect("well-formed");
    let entries: Vec<String> =
        managed.entries().iter().filter(|e| e.manager == name).map(|e| e.fields.to_string()).collect();
    entries.join("\n")
}

fn spec(object: &Value) -> &Value {
    &object["spec"]
}

#[test]
fn the_first_apply_creates_and_owns() {
    let object = applied(None, json!({"replicas": 1, "map": {"k": "v"}, "list": ["x"]}), "a");
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "Test",
            "metadata": {"name": "a", "managedFields": [{
                "manager": "a", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:list": {}, "f:map": {"f:k": {}}, "f:replicas": {}}},
            }]},
            "spec": {"replicas": 1, "map": {"k": "v"}, "list": ["x"]},
        })
    );
}

#[test]
fn an_apply_that_changes_nothing_answers_the_same_object() {
    let object = applied(None, json!({"replicas": 1}), "a");
    let again = apply(Some(&object), &config(json!({"replicas": 1})), Some(&schema()), &later("a"), false);
    assert_eq!(again.as_ref(), Ok(&object));
    let changed = apply(Some(&object), &config(json!({"replicas": 2})), Some(&schema()), &later("a"), false)
        .expect("own field");
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], "2026-02-02T00:00:00Z");
}

#[test]
fn what_is_no_longer_applied_goes() {
    let object = applied(
        None,
        json!({"replicas": 1, "name": "n", "map": {"k": "v", "l": "w"}, "struct": {"a": "1"}}),
        "a",
    );
    let object = applied(Some(&object), json!({"name": "n", "map": {"k": "v"}}), "a");
    assert_eq!(*spec(&object), json!({"name": "n", "map": {"k": "v"}}));
    assert_eq!(owned(&object, "a"), ".spec.map.k\n.spec.name");
}

#[test]
fn what_somebody_else_owns_stays() {
    let object = applied(None, json!({"replicas": 1, "map": {"k": "v"}}), "a");
    let object = applied(Some(&object), json!({"map": {"k": "v", "other": "o"}}), "b");
    assert_eq!(owned(&object, "a"), ".spec.map.k\n.spec.replicas");
    assert_eq!(owned(&object, "b"), ".spec.map.k\n.spec.map.other");
    let object = applied(Some(&object), json!({"replicas": 1}), "a");
    assert_eq!(*spec(&object), json!({"replicas": 1, "map": {"k": "v", "other": "o"}}));
    let object = applied(Some(&object), json!({}), "b");
    assert_eq!(*spec(&object), json!({"replicas": 1}));
}

#[test]
fn a_conflict_names_field_and_manager() {
    let object = applied(None, json!({"replicas": 1, "name": "n"}), "a");
    assert_eq!(conflicts(&object, json!({"replicas": 2}), "b"), [("a".into(), ".spec.replicas".into())]);
    let error = apply(Some(&object), &config(json!({"replicas": 2})), Some(&schema()), &manager("b"), false);
    assert_eq!(
        error.expect_err("conflict").to_string(),
        r#"Apply failed with 1 conflict: conflict with "a": .spec.replicas"#
    );
    let error = apply(
        Some(&object),
        &config(json!({"replicas": 2, "name": "m"})),
        Some(&schema()),
        &manager("b"),
        false,
    );
    assert_eq!(
        error.expect_err("conflict").to_string(),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.name\n- .spec.replicas"
    );
    // The same value is no conflict, but shared.
    let object = applied(Some(&object), json!({"replicas": 1}), "b");
    assert_eq!(
        (owned(&object, "a"), owned(&object, "b")),
        (".spec.name\n.spec.replicas".into(), ".spec.replicas".into())
    );
}

#[test]
fn force_takes_the_field() {
    let object = applied(None, json!({"replicas": 1, "name": "n"}), "a");
    let object = apply(Some(&object), &config(json!({"replicas": 2})), Some(&schema()), &manager("b"), true)
        .expect("forced");
    assert_eq!(*spec(&object), json!({"replicas": 2, "name": "n"}));
    assert_eq!((owned(&object, "a"), owned(&object, "b")), (".spec.name".into(), ".spec.replicas".into()));
    // The former owner now meets the conflict.
    assert_eq!(
        conflicts(&object, json!({"replicas": 1, "name": "n"}), "a"),
        [("b".into(), ".spec.replicas".into())]
    );
}

/// "Transferring ownership" of the documentation: an autoscaler takes replicas over, then the user drops the field.
#[test]
fn ownership_moves_to_a_controller() {
    let object = applied(None, json!({"replicas": 1, "name": "n"}), "user");
    let mut scaled = object.clone();
    scaled["spec"]["replicas"] = json!(3);
    let object = update(Some(&object), scaled, Some(&schema()), &manager("autoscaler"));
    assert_eq!(
        (owned(&object, "user"), owned(&object, "autoscaler")),
        (".spec.name".into(), ".spec.replicas".into())
    );
    let error = apply(
        Some(&object),
        &config(json!({"replicas": 1, "name": "n"})),
        Some(&schema()),
        &manager("user"),
        false,
    );
    assert_eq!(
        error.expect_err("conflict").to_string(),
        r#"Apply failed with 1 conflict: conflict with "autoscaler" using v1: .spec.replicas"#
    );
    let object = applied(Some(&object), json!({"name": "n"}), "user");
    assert_eq!(*spec(&object), json!({"replicas": 3, "name": "n"}));
}

#[test]
fn map_lists_merge_by_key() {
    let object =
        applied(None, json!({"ports": [{"port": 80, "name": "web"}, {"port": 53, "protocol": "UDP"}]}), "a");
    let object = applied(
        Some(&object),
        json!({"ports": [{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "name": "dns"}]}),
        "b",
    );
    // Without a protocol the entry is that of the default, TCP.
    assert_eq!(
        owned(&object, "a").lines().collect::<Vec<_>>(),
        [
            r#".spec.ports[port=53,protocol="UDP"]"#,
            r#".spec.ports[port=53,protocol="UDP"].port"#,
            r#".spec.ports[port=53,protocol="UDP"].protocol"#,
            r#".spec.ports[port=80,protocol="TCP"]"#,
            r#".spec.ports[port=80,protocol="TCP"].name"#,
            r#".spec.ports[port=80,protocol="TCP"].port"#,
        ]
    );
    assert_eq!(
        *spec(&object),
        json!({"ports": [
            {"port": 80, "name": "web"}, {"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "name": "dns"},
        ]})
    );
    let object = applied(Some(&object), json!({"ports": []}), "a");
    assert_eq!(
        *spec(&object),
        json!({"ports": [{"port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "name": "dns"}]})
    );
    assert_eq!(
        conflicts(&object, json!({"ports": [{"port": 53, "protocol": "UDP", "name": "x"}]}), "a"),
        [("b".into(), r#".spec.ports[port=53,protocol="UDP"].name"#.into())]
    );
}

#[test]
fn sets_merge_by_value() {
    let object = applied(None, json!({"set": ["x", "y"]}), "a");
    let object = applied(Some(&object), json!({"set": ["y", "z"]}), "b");
    assert_eq!(*spec(&object), json!({"set": ["x", "y", "z"]}));
    assert_eq!(owned(&object, "b"), ".spec.set[=\"y\"]\n.spec.set[=\"z\"]");
    let object = applied(Some(&object), json!({}), "a");
    assert_eq!(*spec(&object), json!({"set": ["y", "z"]}));
    let finalizers =
        json!({"apiVersion": "v1", "kind": "Test", "metadata": {"name": "a", "finalizers": ["f/1"]}});
    let object =
        apply(Some(&object), &finalizers, Some(&schema()), &manager("c"), false).expect("no conflict");
    assert_eq!(owned(&object, "c"), ".metadata.finalizers[=\"f/1\"]");
}

#[test]
fn what_is_atomic_is_one_field() {
    for field in ["list", "atomicMap"] {
        let (one, two) = if field == "list" {
            (json!(["x"]), json!(["x", "y"]))
        } else {
            (json!({"x": "1"}), json!({"y": "1"}))
        };
        let object = applied(None, json!({field: one.clone()}), "a");
        assert_eq!(owned(&object, "a"), format!(".spec.{field}"));
        assert_eq!(
            conflicts(&object, json!({field: two.clone()}), "b"),
            [("a".to_owned(), format!(".spec.{field}"))]
        );
        let object =
            apply(Some(&object), &config(json!({field: two.clone()})), Some(&schema()), &manager("b"), true)
                .expect("forced");
        assert_eq!(object["spec"][field], two);
        assert_eq!(owned(&object, "a"), "");
    }
}

#[test]
fn order_follows_the_applier() {
    let object = applied(None, json!({"set": ["a", "b", "c"]}), "a");
    let object = applied(Some(&object), json!({"set": ["c", "x", "a"]}), "b");
    let order: Vec<&str> =
        object["spec"]["set"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let place = |name: &str| order.iter().position(|one| *one == name).expect("is there");
    assert!(place("c") < place("x") && place("x") < place("a"), "{order:?}");
    assert_eq!(order.len(), 4);
}

#[test]
fn status_and_spec_are_owned_apart() {
    let with_status = |phase: &str| json!({"apiVersion": "v1", "kind": "Test", "metadata": {"name": "a"}, "spec": {"replicas": 9}, "status": {"phase": phase}});
    let object = apply(None, &with_status("x"), Some(&schema()), &manager("a"), false).expect("new");
    assert_eq!(object.get("status"), None, "not through the main resource");
    let object =
        apply(Some(&object), &with_status("x"), Some(&schema()), &status("b"), false).expect("status");
    assert_eq!((&object["status"], &object["spec"]), (&json!({"phase": "x"}), &json!({"replicas": 9})));
    assert_eq!((owned(&object, "a"), owned(&object, "b")), (".spec.replicas".into(), ".status.phase".into()));
    // Nor does an update of one touch owners of the other.
    let mut changed = object.clone();
    changed["status"]["phase"] = json!("y");
    let main = update(Some(&object), changed.clone(), Some(&schema()), &manager("c"));
    assert_eq!((owned(&main, "b"), owned(&main, "c")), (".status.phase".into(), String::new()));
    let through_status = update(Some(&object), changed, Some(&schema()), &status("c"));
    assert_eq!(
        (owned(&through_status, "b"), owned(&through_status, "c")),
        (String::new(), ".status.phase".into())
    );
    let entry = &through_status["metadata"]["managedFields"][1];
    assert_eq!((&entry["subresource"], &entry["operation"]), (&json!("status"), &json!("Update")));
    // Without a status subresource, status is a field.
    let plain = schema().without_status_subresource();
    let object = apply(None, &with_status("x"), Some(&plain), &manager("a"), false).expect("new");
    assert_eq!(owned(&object, "a"), ".spec.replicas\n.status.phase");
}

#[test]
fn nobody_owns_identity() {
    let mut object = config(json!({"replicas": 1}));
    object["metadata"] = json!({"name": "a", "namespace": "n", "labels": {"l": "1"}});
    let mut live = apply(None, &object, None, &manager("a"), false).expect("new");
    assert_eq!(owned(&live, "a"), ".metadata.labels.l\n.spec\n.spec.replicas");
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["resourceVersion"] = json!("5");
    object["metadata"]["resourceVersion"] = json!("4");
    let again = apply(Some(&live), &object, None, &later("a"), false);
    assert_eq!(again.as_ref(), Ok(&live), "what the server sets is kept");
}

#[test]
fn without_a_schema_maps_merge_and_lists_do_not() {
    let one = config(json!({"deep": {"a": {"x": 1}}, "list": [{"name": "x"}]}));
    let two = config(json!({"deep": {"a": {"y": 2}}}));
    let object = apply(None, &one, None, &manager("a"), false).expect("new");
    let object = apply(Some(&object), &two, None, &manager("b"), false).expect("no conflict");
    assert_eq!(*spec(&object), json!({"deep": {"a": {"x": 1, "y": 2}}, "list": [{"name": "x"}]}));
    let other = config(json!({"list": [{"name": "y"}]}));
    let error = apply(Some(&object), &other, None, &manager("b"), false).expect_err("atomic");
    assert!(error.to_string().ends_with("\"a\": .spec.list"), "{error}");
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let mut live = config(json!({"replicas": 1, "name": "n"}));
    live["metadata"]["uid"] = json!("u");
    assert_eq!(
        conflicts(&live, json!({"replicas": 2}), "a"),
        [("before-first-apply".into(), ".spec.replicas".into())]
    );
    let object = applied(Some(&live), json!({"replicas": 1}), "a");
    assert_eq!(owned(&object, "before-first-apply"), ".spec\n.spec.name\n.spec.replicas");
    // Dropping it again leaves it to the former owner.
    let object = applied(Some(&object), json!({}), "a");
    assert_eq!(*spec(&object), json!({"replicas": 1, "name": "n"}));
}

#[test]
fn updates_own_what_they_change() {
    let new = config(json!({"replicas": 1, "map": {"k": "v"}}));
    let object = update(None, new, Some(&schema()), &manager("a"));
    assert_eq!(owned(&object, "a"), ".spec\n.spec.map\n.spec.map.k\n.spec.replicas");
    // No change, no write.
    assert_eq!(update(Some(&object), object.clone(), Some(&schema()), &later("a")), object);
    assert_eq!(update(Some(&object), object.clone(), Some(&schema()), &later("b")), object);
    // Leaving managedFields out keeps them.
    let mut bare = object.clone();
    bare["metadata"] = json!({"name": "a"});
    assert_eq!(update(Some(&object), bare, Some(&schema()), &later("b")), object);
    let mut changed = object.clone();
    changed["spec"] = json!({"replicas": 2, "name": "n"});
    let object = update(Some(&object), changed, Some(&schema()), &later("b"));
    assert_eq!(
        (owned(&object, "a"), owned(&object, "b")),
        (".spec".into(), ".spec.name\n.spec.replicas".into())
    );
    let entry = &object["metadata"]["managedFields"][1];
    assert_eq!((&entry["manager"], &entry["time"]), (&json!("b"), &json!("2026-02-02T00:00:00Z")));
}

#[test]
fn owners_can_be_reset_and_are_then_not_tracked() {
    let object = applied(None, json!({"replicas": 1}), "a");
    let mut reset = object.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    let object = update(Some(&object), reset, Some(&schema()), &manager("b"));
    assert_eq!(object, config(json!({"replicas": 1})));
    let mut changed = object.clone();
    changed["spec"]["replicas"] = json!(2);
    assert_eq!(update(Some(&object), changed.clone(), Some(&schema()), &manager("b")), changed);
}

#[test]
fn many_updaters_become_few() {
    let mut object = applied(None, json!({"replicas": 1}), "a");
    for number in 0..30 {
        let mut changed = object.clone();
        changed["spec"]["map"][format!("k{number}")] = json!("v");
        let writer =
            Manager { time: format!("2026-01-01T00:00:{number:02}Z"), ..manager(&format!("w{number}")) };
        object = update(Some(&object), changed, Some(&schema()), &writer);
    }
    let managed = ManagedFields::from_json(object.pointer("/metadata/managedFields")).expect("well-formed");
    let updaters = managed.entries().iter().filter(|entry| entry.operation == Operation::Update).count();
    assert_eq!((updaters, managed.entries().len()), (10, 11));
    assert!(owned(&object, "ancient-changes").contains(".spec.map.k0\n"));
    assert_eq!(owned(&object, "w29"), ".spec.map.k29");
}

#[test]
fn what_cannot_be_applied_is_named() {
    let refuse = |applied: &Value| match apply(None, applied, Some(&schema()), &manager("a"), false) {
        Err(ApplyError::Invalid(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let mut managed = config(json!({}));
    managed["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    assert_eq!(refuse(&managed), "metadata.managedFields: Forbidden: must be nil");
    assert_eq!(refuse(&config(json!({"set": ["x", "y", "x"]}))), r#"spec.set[2]: Duplicate value: "x""#);
    assert_eq!(
        refuse(&config(json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}))),
        r#"spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}"#
    );
    assert!(refuse(&config(json!({"ports": ["x"]}))).starts_with("spec.ports[0]: Invalid value: \"x\": "));
    assert!(refuse(&json!([])).contains("must be an object"));
}

/// Values that fit the schema.
fn specs() -> impl Strategy<Value = Value> {
    let text = || "[ab]".prop_map(Value::from);
    let map = || prop::collection::btree_map("[abc]", "[ab]", 0..3).prop_map(|map| json!(map));
    let set = prop::collection::btree_set("[abcd]", 0..4);
    let ports = prop::collection::btree_map(1..4_u8, ("[ab]?", any::<bool>()), 0..3).prop_map(|ports| {
        let port = |(port, (name, udp)): (u8, (String, bool))| {
            let mut out = json!({"port": port});
            if udp {
                out["protocol"] = json!("UDP");
            }
            if !name.is_empty() {
                out["name"] = json!(name);
            }
            out
        };
        Value::Array(ports.into_iter().map(port).collect())
    });
    let fields = (
        prop::option::of((0..3_i32).prop_map(Value::from)),
        prop::option::of(text()),
        prop::option::of(prop::collection::btree_map("[ab]", "[ab]", 0..3).prop_map(|map| json!(map))),
        prop::option::of(map()),
        prop::option::of(map()),
        prop::option::of(prop::collection::vec("[ab]", 0..3).prop_map(|list| json!(list))),
        prop::option::of((set, any::<bool>()).prop_map(|(set, reverse)| {
            let mut list: Vec<String> = set.into_iter().collect();
            if reverse {
                list.reverse();
            }
            json!(list)
        })),
        prop::option::of(ports),
    );
    fields.prop_map(|(replicas, name, structure, map, atomic, list, set, ports)| {
        let named = [
            ("replicas", replicas),
            ("name", name),
            ("struct", structure),
            ("map", map),
            ("atomicMap", atomic),
            ("list", list),
            ("set", set),
            ("ports", ports),
        ];
        Value::Object(named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    })
}

fn forced(live: Option<&Value>, spec: &Value, who: &str) -> Value {
    apply(live, &config(spec.clone()), Some(&schema()), &manager(who), true).expect("forced")
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(a in specs(), b in specs(), c in specs()) {
        let object = forced(Some(&forced(Some(&forced(None, &a, "a")), &b, "b")), &c, "a");
        let again = apply(Some(&object), &config(c), Some(&schema()), &later("a"), false);
        prop_assert_eq!(again, Ok(object));
    }

    #[test]
    fn a_lone_manager_has_what_it_applied_last(a in specs(), b in specs()) {
        let object = forced(Some(&forced(None, &a, "a")), &b, "a");
        let fresh = forced(None, &b, "a");
        let sorted = |mut value: Value| {
            for list in ["set", "ports"] {
                if let Some(Value::Array(list)) = value.get_mut(list) {
                    list.sort_by_key(ToString::to_string);
                }
            }
            value
        };
        prop_assert_eq!(sorted(spec(&object).clone()), sorted(spec(&fresh).clone()));
        prop_assert_eq!(owned(&object, "a"), owned(&fresh, "a"));
    }

    #[test]
    fn agreeing_managers_share(a in specs()) {
        let object = forced(None, &a, "a");
        let both = apply(Some(&object), &config(a), Some(&schema()), &manager("b"), false);
        let both = both.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(spec(&both), spec(&object));
        prop_assert_eq!(owned(&both, "a"), owned(&both, "b"));
    }

    #[test]
    fn force_wins_and_owns(a in specs(), b in specs()) {
        let object = forced(Some(&forced(None, &a, "a")), &b, "b");
        prop_assert_eq!(owned(&object, "b"), owned(&forced(None, &b, "b"), "b"));
        // What the first still owns has the value it applied.
        let again = apply(Some(&object), &config(b), Some(&schema()), &manager("b"), false);
        prop_assert_eq!(again, Ok(object));
    }

    #[test]
    fn any_objects_are_answered(live in crate::testing::json(), new in crate::testing::json(), known in any::<bool>()) {
        let schema = known.then(schema);
        let who = manager("a");
        if let Ok(object) = apply(Some(&live), &new, schema.as_ref(), &who, true) {
            prop_assert_eq!(apply(Some(&object), &new, schema.as_ref(), &who, true), Ok(object));
        }
        let _ = apply(Some(&live), &new, schema.as_ref(), &who, false);
        let updated = update(Some(&live), new.clone(), schema.as_ref(), &who);
        prop_assert_eq!(updated.is_object(), new.is_object());
        let _ = update(None, new, schema.as_ref(), &who);
    }
}
