//! What a flight may see, and where it may write.

use horchestra_tests::Server;
use serde_json::{Value, json};

use crate::airway::{backend, backends, cluster_backends, config_map, fly, refusal, start};

fn secret(server: &Server, namespace: &str, name: &str, value: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "stringData": {"key": value}});
    server.apply(&secret.to_string());
}

fn reference(namespace: &str, name: &str) -> Value {
    json!({"$ref": {"kind": "Secret", "namespace": namespace, "name": name, "at": "/data/key"}})
}

#[test]
fn several_namespaces_only_where_the_kind_is_the_clusters() {
    let (_dir, server) = start();
    for name in ["foo", "bar"] {
        server.ask(&["create", "namespace", name]).unwrap();
    }
    let maps = ["foo", "bar"].map(|namespace| {
        let mut map = config_map("map", json!({"a": "b"}));
        map["metadata"]["namespace"] = namespace.into();
        map
    });
    let script = json!({"resources": maps});
    fly(&server, &backends(json!({})));
    let text = refusal(&server, &backend("both", script.clone()));
    let words = "Multiple namespaces detected (if desired enable multinamespace releases)";
    assert!(text.contains(words), "{text}");

    fly(&server, &cluster_backends(json!({})));
    let instance = json!({"apiVersion": "examples.com/v1", "kind": "ClusterBackend", "metadata": {"name": "both"},
        "spec": script});
    server.apply(&instance.to_string());
    for namespace in ["foo", "bar"] {
        server.expect(&["get", "configmap", "map", "-n", namespace, "-o", "jsonpath={.data.a}"], "b");
    }
    server.ask(&["delete", "clusterbackend", "both", "--timeout=30s"]).unwrap();
    for namespace in ["foo", "bar"] {
        server.expect(&["get", "configmap", "map", "-n", namespace, "--ignore-not-found", "-o", "name"], "");
    }
}

#[test]
fn only_what_a_matcher_names_can_be_read() {
    let (_dir, server) = start();
    server.ask(&["create", "namespace", "custom"]).unwrap();
    secret(&server, "default", "one", "1");
    secret(&server, "custom", "two", "2");
    let script = json!({"resources": [config_map("map",
        json!({"one": reference("default", "one"), "two": reference("custom", "two")}))]});
    let instance = backend("reader", script);
    let forbidden = |name: &str| {
        format!(
            "failed to lookup secret {name}: forbidden: cannot access resource outside of target release ownership"
        )
    };
    let cases: [(&[&str], Option<&str>); 5] = [
        (&[], Some("one")),
        (&["bar/Secret:example"], Some("one")),
        (&["default/*"], Some("two")),
        (&["Secret"], None),
        (&["*"], None),
    ];
    for (matchers, refused) in cases {
        fly(&server, &backends(json!({"clusterAccess": true, "resourceAccessMatchers": matchers})));
        let Some(name) = refused else {
            server.apply(&instance.to_string());
            server.ask(&["wait", "--for=condition=Ready", "backend/reader", "--timeout=30s"]).unwrap();
            server.expect(&["get", "configmap", "map", "-o", "jsonpath={.data.one}{.data.two}"], "12");
            server.ask(&["delete", "backend", "reader", "--timeout=30s"]).unwrap();
            server.expect(&["get", "configmap", "map", "--ignore-not-found", "-o", "name"], "");
            continue;
        };
        let text = refusal(&server, &instance);
        assert!(text.contains(&forbidden(name)), "{matchers:?}: {text}");
    }
}

#[test]
fn without_access_nothing_can_be_read() {
    let (_dir, server) = start();
    secret(&server, "default", "one", "1");
    fly(&server, &backends(json!({})));
    let script = json!({"resources": [config_map("map", json!({"one": reference("default", "one")}))]});
    let text = refusal(&server, &backend("reader", script));
    assert!(text.contains("access to the cluster has not been granted"), "{text}");
}

#[test]
fn what_somebody_else_owns_is_followed() {
    let (_dir, server) = start();
    secret(&server, "default", "one", "secret one");
    fly(
        &server,
        &backends(json!({"clusterAccess": true, "mode": "dynamic", "resourceAccessMatchers": ["Secret"]})),
    );
    let script = json!({"resources": [config_map("map", json!({"text": reference("default", "one")}))]});
    server.apply(&backend("reader", script).to_string());
    let text = ["get", "configmap", "map", "-o", "jsonpath={.data.text}"];
    server.expect(&text, "secret one");
    secret(&server, "default", "one", "updated");
    server.expect(&text, "updated");
}
