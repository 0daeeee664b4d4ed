//! What is refused, in which words.

use horchestra_tests::wait_for;
use serde_json::json;

use crate::airway::{backend, backends, config_map, deployment, fly, refusal, start};

#[test]
fn an_airway_without_a_stored_version_is_denied() {
    let (_dir, server) = start();
    let mut airway = backends(json!({}));
    airway["spec"]["template"]["versions"][0]["storage"] = false.into();
    let text = refusal(&server, &airway);
    assert!(text.contains(r#"admission webhook "airways.yoke.cd" denied the request"#), "{text}");
}

#[test]
fn all_errors_of_all_children_are_reported_together() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({})));
    let script = json!({"resources": [deployment("web", json!(-5), "!@#$%^&*()")]});
    let text = refusal(&server, &backend("bad", script));
    assert!(text.contains("backends.examples.com"), "{text}");
    assert!(text.contains("metadata.labels: Invalid value"), "{text}");
    assert!(text.contains("spec.replicas: Invalid value"), "{text}");
    assert!(server.ask(&["get", "backend", "bad"]).is_err(), "nothing of it is stored");
}

#[test]
fn a_flight_that_takes_too_long_is_ended_and_named() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({"timeout": "30ms"})));
    let text = refusal(&server, &backend("endless", json!({"endless": true})));
    let words = "module closed with context deadline exceeded: execution timeout (30ms) exceeded";
    assert!(text.contains(words), "{text}");
}

#[test]
fn another_checksum_is_found_when_the_module_is_used() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({})));
    let script = |value: &str| json!({"resources": [config_map("map", json!({"value": value}))]});
    server.apply(&backend("one", script("1")).to_string());
    let mut airway = backends(json!({}));
    airway["spec"]["wasmUrls"]["flightChecksum"] = "applebottomjeans".into();
    server.apply(&airway.to_string());
    wait_for("the refusal of the instance", || {
        let output = server.kubectl(&["apply", "-f", "-"], &backend("one", script("2")).to_string());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let words = r#"cannot verify module against expected checksum: wanted "applebottomjeans""#;
        if text.contains(words) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn a_namespace_takes_its_instances_with_it() {
    let (_dir, server) = start();
    fly(&server, &backends(json!({})));
    server.ask(&["create", "namespace", "foo"]).unwrap();
    let mut instance = backend("one", json!({"resources": [config_map("map", json!({"a": "b"}))]}));
    instance["metadata"]["namespace"] = "foo".into();
    server.apply(&instance.to_string());
    wait_for("its child", || server.ask(&["get", "configmap", "map", "-n", "foo"]));
    server.ask(&["delete", "namespace", "foo", "--timeout=30s"]).unwrap();
    assert!(server.ask(&["get", "namespace", "foo"]).is_err());
    server.expect(&["get", "backends", "-A", "-o", "name"], "");
    server.expect(
        &["get", "configmaps", "-A", "-o", "jsonpath={.items[?(@.metadata.name=='map')].metadata.name}"],
        "",
    );
}
