//! Airways of the scripted flight.

use horchestra_tests::{Server, module};
use serde_json::{Value, json};

/// A server without a node, in memory.
pub(crate) fn start() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &["--no-node", "--store", "memory"]);
    (dir, server)
}

/// An Airway for Backends, with more in its spec.
pub(crate) fn backends(more: Value) -> Value {
    of("Backend", "backends", "Namespaced", more)
}

/// An Airway for ClusterBackends, with more in its spec.
pub(crate) fn cluster_backends(more: Value) -> Value {
    of("ClusterBackend", "clusterbackends", "Cluster", more)
}

fn of(kind: &str, plural: &str, scope: &str, more: Value) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}});
    let mut airway = json!({
        "apiVersion": "yoke.cd/v1alpha1",
        "kind": "Airway",
        "metadata": {"name": format!("{plural}.examples.com")},
        "spec": {
            "wasmUrls": {"flight": module("script")},
            "template": {
                "group": "examples.com",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "scope": scope,
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        },
    });
    for (key, value) in more.as_object().unwrap() {
        airway["spec"][key] = value.clone();
    }
    airway
}

/// Applies an Airway and waits until its flight is there.
pub(crate) fn fly(server: &Server, airway: &Value) {
    server.apply(&airway.to_string());
    let name = airway["metadata"]["name"].as_str().unwrap();
    server.ask(&["wait", "--for=condition=Ready", "airway", name, "--timeout=60s"]).unwrap();
}

/// A Backend with a script.
pub(crate) fn backend(name: &str, script: Value) -> Value {
    json!({"apiVersion": "examples.com/v1", "kind": "Backend",
        "metadata": {"name": name, "namespace": "default"}, "spec": script})
}

/// A Deployment as Backends want it.
pub(crate) fn deployment(name: &str, replicas: Value, label: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": label}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": label}},
            "template": {"metadata": {"labels": {"app": label}},
                "spec": {"containers": [{"name": "web", "image": "busybox",
                    "command": ["sh", "-c", "exec sleep 1000000"]}]}}}})
}

/// A ConfigMap.
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Why the server refuses a manifest.
pub(crate) fn refusal(server: &Server, manifest: &Value) -> String {
    let output = server.kubectl(&["apply", "-f", "-"], &manifest.to_string());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was accepted: {manifest}");
    text
}
