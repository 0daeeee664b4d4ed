//! Waiting for what somebody else does, and ending when asked: on a local node, with real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;

use horchestra_tests::{Server, airway, images, root, wait_for};

fn start(directory: &tempfile::TempDir) -> Server {
    let images = images();
    Server::start(&directory.path().join("data"), &["--images", images.to_str().unwrap()])
}

fn ready(server: &Server, airways: &[&str]) {
    for airway in airways {
        let what = format!("airway/{airway}");
        server.ask(&["wait", "--for=condition=Ready", &what, "--timeout=120s"]).unwrap();
    }
}

/// The processes of this machine that have a word in their command line.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let command_lines = entries.filter_map(|e| fs::read(e.path().join("cmdline")).ok());
    let texts = command_lines.map(|c| String::from_utf8_lossy(&c).replace('\0', " "));
    texts.filter(|text| text.contains(word)).collect()
}

/// The kind Database without anybody who provides databases.
const DATABASES: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.examples.com}
spec:
  group: examples.com
  scope: Namespaced
  names: {kind: Database, plural: databases}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

#[test]
fn an_app_waits_for_a_secret_that_somebody_else_creates() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory);
    server.apply(DATABASES);
    let both = airway("app");
    let apps = both.split("\n---").find(|text| text.contains("name: apps.examples.com")).unwrap();
    server.apply(apps);
    ready(&server, &["apps.examples.com"]);
    // A word by which its process is found.
    let word = format!("86400{}", std::process::id());
    let instance = fs::read_to_string(root().join("examples/app/instance.yaml")).unwrap();
    server.apply(&instance.replace("1000000", &word));

    let status = ["get", "app", "shop", "-o", "jsonpath={.status.message}"];
    server.expect(&status, "waiting for Secret shop-connection");
    let reason = "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}";
    server.expect(&["get", "app", "shop", "-o", reason], "InProgress");
    assert_eq!(server.ask(&["get", "databases", "-o", "name"]).unwrap(), "database.examples.com/shop\n");
    assert_eq!(server.ask(&["get", "deployments", "-o", "name"]).unwrap(), "", "it deployed too early");

    server.ask(&["create", "secret", "generic", "shop-connection", "--from-literal=host=db-1"]).unwrap();
    server.expect(&status, "deployed and ready");
    assert_eq!(processes_with(&word).len(), 1);
    server.ask(&["wait", "--for=condition=Available", "deployment/shop", "--timeout=30s"]).unwrap();

    server.ask(&["delete", "app", "shop", "--timeout=60s"]).unwrap();
    for gone in ["deployment/shop", "database/shop"] {
        server.expect(&["get", gone, "--ignore-not-found"], "");
    }
    wait_for("the process ends", || match processes_with(&word).as_slice() {
        [] => Ok(()),
        running => Err(running.join("; ")),
    });
    server.ask(&["get", "secret", "shop-connection"]).expect("it is somebody else's");
    assert!(server.stop(), "it ends well when it is told to");
}

#[test]
fn workloads_end_with_the_server_and_come_back_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(&directory);
    let word = format!("86401{}", std::process::id());
    server.apply(&format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: sleeper}}
spec:
  selector: {{matchLabels: {{app: sleeper}}}}
  template:
    metadata: {{labels: {{app: sleeper}}}}
    spec: {{containers: [{{name: c, image: busybox, command: [sh, -c, exec sleep {word}]}}]}}
"#
    ));
    server.ask(&["wait", "--for=condition=Available", "deployment/sleeper", "--timeout=30s"]).unwrap();
    assert_eq!(processes_with(&word).len(), 1);
    assert!(server.stop(), "it ends well when it is told to");
    assert_eq!(processes_with(&word), Vec::<String>::new(), "left behind");

    let server = start(&directory);
    wait_for("the workload is back", || match processes_with(&word).as_slice() {
        [_] => Ok(()),
        other => Err(other.join("; ")),
    });
    assert!(server.stop(), "it ends well when it is told to");
}
