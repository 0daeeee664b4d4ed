//! When a flight is evaluated again.

use horchestra_tests::Server;
use serde_json::{Value, json};

use crate::airway::{backend, backends, config_map, deployment, fly, start};

fn replicas(server: &Server, count: &str) {
    server.expect(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"], count);
}

/// Lets the Deployment be as available as it wants to be.
fn available(server: &Server) {
    let status = r#"{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,
        "conditions":[{"type":"Available","status":"True"}]}}"#;
    server
        .ask(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status])
        .unwrap();
}

fn ready(server: &Server) {
    available(server);
    server.ask(&["wait", "--for=condition=Ready", "backend/one", "--timeout=30s"]).unwrap();
}

#[test]
fn drift_is_healed_at_its_interval() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({"fixDriftInterval": "500ms"})));
    let script = json!({"resources": [deployment("web", json!(2), "web")]});
    server.apply(&backend("one", script).to_string());
    replicas(&server, "2");
    ready(&server);
    server.ask(&["scale", "deployment", "web", "--replicas=1"]).unwrap();
    replicas(&server, "2");
}

#[test]
fn without_an_interval_a_standard_instance_that_is_ready_is_left_alone() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({})));
    let script = json!({"resources": [deployment("web", json!(2), "web")]});
    server.apply(&backend("one", script).to_string());
    replicas(&server, "2");
    ready(&server);
    server.ask(&["scale", "deployment", "web", "--replicas=1"]).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    replicas(&server, "1");
}

/// A Deployment with as many replicas as the instance's own ConfigMap says.
fn own_map() -> Value {
    let said = |number: bool| json!({"$ref": {"kind": "ConfigMap", "name": "settings", "at": "/data/replicas", "default": "2", "number": number}});
    json!({"resources": [
        config_map("settings", json!({"replicas": said(false)})),
        deployment("web", said(true), "web"),
    ]})
}

#[test]
fn an_instance_can_ask_for_another_mode_itself() {
    let (_dir, server) = start();
    // The Airway says nothing, which is `standard`.
    fly(&server, &backends(json!({"clusterAccess": true})));
    let mut instance = backend("one", own_map());
    instance["metadata"]["annotations"] = json!({"overrides.yoke.cd/mode": "dynamic"});
    server.apply(&instance.to_string());
    replicas(&server, "2");
    ready(&server);

    server.ask(&["scale", "deployment", "web", "--replicas=8"]).unwrap();
    replicas(&server, "2");

    server.ask(&["delete", "deployment", "web"]).unwrap();
    replicas(&server, "2");

    let patch = r#"{"data":{"replicas":"7"}}"#;
    server.ask(&["patch", "configmap", "settings", "--type=merge", "-p", patch]).unwrap();
    replicas(&server, "7");
}
