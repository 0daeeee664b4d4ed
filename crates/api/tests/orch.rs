//! The kinds of `orch.ks-tool.dev/v1`: manifests as users write them, and definitions as an API server takes them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests say what is wrong by panicking")]

use horchestra_api::{Application, PersistentVolume, ReclaimPolicy, RestartPolicy, crds};
use serde_json::{Value, json};

fn postgres() -> Value {
    json!({
        "apiVersion": "orch.ks-tool.dev/v1",
        "kind": "Application",
        "metadata": {"name": "postgres-18"},
        "spec": {
            "image": "docker.io/library/postgres:18-alpine",
            "nodeName": "sav-01",
            "restartPolicy": "Always",
            "env": {"POSTGRES_HOST_AUTH_METHOD": "trust", "PGDATA": "/var/lib/postgresql/data"},
            "ports": [{"name": "postgres", "port": 5432}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "volumeMounts": [
                {"pv": "pg-data", "path": "/var/lib/postgresql"},
                {"tmpfs": {"size": "64Mi"}, "path": "/run/postgresql"},
            ],
        },
    })
}

#[test]
fn an_application_is_read_and_written_letter_for_letter() {
    let app: Application = serde_json::from_value(postgres()).unwrap();
    assert_eq!(app.spec.restart_policy, RestartPolicy::Always);
    assert_eq!(app.spec.volume_mounts[1].tmpfs.as_ref().unwrap().size.as_ref().unwrap().0, "64Mi");
    assert_eq!(serde_json::to_value(&app).unwrap(), postgres());
}

#[test]
fn a_volume_is_read_with_its_defaults() {
    let manifest = json!({
        "apiVersion": "orch.ks-tool.dev/v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pg-data"},
        "spec": {"size": "10Gi", "node": "sav-01"},
    });
    let volume: PersistentVolume = serde_json::from_value(manifest).unwrap();
    assert_eq!(volume.spec.size.0, "10Gi");
    assert_eq!(volume.spec.reclaim_policy, ReclaimPolicy::Delete);
}

#[test]
fn an_image_is_all_that_is_needed() {
    let app: Application = serde_json::from_value(json!({
        "apiVersion": "orch.ks-tool.dev/v1", "kind": "Application", "metadata": {"name": "a"}, "spec": {"image": "x"},
    }))
    .unwrap();
    assert_eq!(app.spec.restart_policy, RestartPolicy::Always);
    assert!(
        serde_json::from_value::<Application>(json!({
            "apiVersion": "orch.ks-tool.dev/v1", "kind": "Application", "metadata": {"name": "a"}, "spec": {},
        }))
        .is_err()
    );
}

/// The rules of structural schemas (Kubernetes, "Specifying a structural schema"): every part has a type or is
/// said to be open, and nothing inside `allOf`, `anyOf`, `oneOf` and `not` has a type or description of its own.
fn check_structural(at: &str, schema: &Value, junctor: bool) {
    let Some(map) = schema.as_object() else { panic!("{at}: not an object: {schema}") };
    let open = map.contains_key("x-kubernetes-preserve-unknown-fields")
        || map.contains_key("x-kubernetes-int-or-string");
    if junctor {
        let int_or_string = at.contains("anyOf");
        for key in ["type", "description", "default", "additionalProperties", "nullable"] {
            assert!(!map.contains_key(key) || int_or_string, "{at}: {key}");
        }
    } else {
        assert!(map.contains_key("type") || open, "{at}: no type: {schema}");
    }
    for key in ["$ref", "$defs", "definitions", "if", "patternProperties", "$schema"] {
        assert!(!map.contains_key(key), "{at}: {key}");
    }
    assert!(map.get("type").is_none_or(Value::is_string), "{at}: type is not one word");
    for (name, property) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_structural(&format!("{at}.{name}"), property, junctor);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get(key).filter(|v| v.is_object()) {
            check_structural(&format!("{at}.{key}"), inner, junctor);
        }
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for inner in map.get(key).and_then(Value::as_array).into_iter().flatten() {
            check_structural(&format!("{at}.{key}"), inner, true);
        }
    }
}

#[test]
fn definitions_are_structural_and_complete() {
    let crds = crds().unwrap();
    let names: Vec<_> = crds.iter().map(|c| c["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["applications.orch.ks-tool.dev", "persistentvolumes.orch.ks-tool.dev", "nodes.orch.ks-tool.dev"]
    );
    for crd in &crds {
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], "v1");
        assert!(version["subresources"]["status"].is_object());
        check_structural("", &version["schema"]["openAPIV3Schema"], false);
    }
    let [app, volume, node] = crds.as_slice() else { panic!("three kinds") };
    assert_eq!(app["spec"]["scope"], "Namespaced");
    assert_eq!(volume["spec"]["scope"], "Namespaced");
    assert_eq!(node["spec"]["scope"], "Cluster");
    assert_eq!(app["spec"]["names"]["shortNames"], json!(["app", "apps"]));
    let columns: Vec<_> = app["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Image", "Status", "Reason", "Restarts", "Node", "Age"]);
    let spec = &app["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["image"]));
    assert_eq!(spec["properties"]["restartPolicy"]["default"], "Always");
    assert_eq!(spec["properties"]["volumeMounts"]["items"]["oneOf"].as_array().unwrap().len(), 4);
    assert_eq!(spec["properties"]["values"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(spec["properties"]["env"]["additionalProperties"]["type"], "string");
}
