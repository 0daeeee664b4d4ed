//! What an instance says about itself.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use horchestra_tests::{Server, images};
use serde_json::{Value, json};

use crate::airway::{backend, backends, config_map, deployment, fly, start};

fn ask(server: &Server, path: &str) -> String {
    server.ask(&["get", "backend", "one", "-o", &format!("jsonpath={{{path}}}")]).unwrap()
}

#[test]
fn a_job_makes_it_in_progress_and_then_ready_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let images = images().display().to_string();
    let server = Server::start(&dir.path().join("data"), &["--store", "memory", "--images", &images]);
    fly(&server, &backends(json!({})));
    let mut watch = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .args(["get", "backends", "--watch", "-o"])
        .arg("jsonpath={.status.conditions[?(@.type=='Ready')].reason}{\"\\n\"}")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "a", "image": "busybox", "command": ["sh", "-c", "sleep 1"]}]}}}});
    server.apply(&backend("one", json!({"resources": [job]})).to_string());
    let mut reasons: Vec<String> = Vec::new();
    for line in BufReader::new(watch.stdout.take().unwrap()).lines() {
        let reason = line.unwrap();
        if !reason.is_empty() && reasons.last() != Some(&reason) {
            reasons.push(reason);
        }
        if reasons.last().is_some_and(|reason| reason == "Ready") {
            break;
        }
    }
    let _ = watch.kill();
    let _ = watch.wait();
    assert_eq!(reasons, ["InProgress", "Ready"]);
}

#[test]
fn a_flights_own_status_is_written_beside_the_conditions() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({})));
    let says = |status: Value| {
        let script = json!({"resources": [config_map("map", json!({"a": "b"}))], "status": status});
        server.apply(&backend("one", script).to_string());
    };
    let condition =
        |of: &str| ask(&server, &format!(".status.conditions[?(@.type=='{of}')]['status','message']"));
    let types = ["get", "backend", "one", "-o", "jsonpath={.status.conditions[*].type}"];

    says(json!({"potato": "peels"}));
    server.ask(&["wait", "--for=condition=Ready", "backend/one", "--timeout=30s"]).unwrap();
    assert_eq!(ask(&server, ".status.potato"), "peels");

    says(
        json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Mine", "message": "not yet, I say"}]}),
    );
    server.expect(
        &["get", "backend", "one", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].message}"],
        "not yet, I say",
    );
    assert!(condition("Ready").starts_with("False"), "{}", condition("Ready"));
    assert_eq!(ask(&server, ".status.potato"), "", "what it does not say any more is gone");

    says(json!({"conditions": [{"type": "Custom", "status": "True", "reason": "Mine", "message": "words"}]}));
    server.expect(&types, "Custom Ready");
    assert_eq!(condition("Custom"), "True words");
    server.ask(&["wait", "--for=condition=Ready", "backend/one", "--timeout=30s"]).unwrap();
}

#[test]
fn a_status_can_follow_the_childrens() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({"mode": "dynamic", "clusterAccess": true})));
    let pods = json!({"$ref": {"kind": "Deployment", "name": "web", "at": "/status/availableReplicas",
        "default": 0, "text": true}});
    let script =
        json!({"resources": [deployment("web", json!(1), "web")], "status": {"availablePods": pods}});
    server.apply(&backend("one", script).to_string());
    let text = ["get", "backend", "one", "-o", "jsonpath={.status.availablePods}"];
    server.expect(&text, "0");
    let status = r#"{"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1,
        "conditions":[{"type":"Available","status":"True"}]}}"#;
    server
        .ask(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status])
        .unwrap();
    server.expect(&text, "1");
    server.ask(&["wait", "--for=condition=Ready", "backend/one", "--timeout=30s"]).unwrap();
}
