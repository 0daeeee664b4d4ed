//! Replicas on a node.

use horchestra_tests::{Server, images, wait_for};
use serde_json::json;

use crate::airway::{backend, backends, deployment, fly};

#[test]
fn as_many_as_asked_for_run_and_none_when_it_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let images = images().display().to_string();
    let server = Server::start(&dir.path().join("data"), &["--store", "memory", "--images", &images]);
    fly(&server, &backends(json!({})));
    let script = json!({"resources": [deployment("web", json!(3), "c4ts")]});
    server.apply(&backend("one", script).to_string());
    let running = || {
        let path = "jsonpath={.items[?(@.status.phase=='Running')].metadata.name}";
        let names = server.ask(&["get", "applications.orch.ks-tool.dev", "-l", "app=c4ts", "-o", path])?;
        Ok::<usize, String>(names.split_whitespace().count())
    };
    let count = |wanted: usize| {
        wait_for(&format!("{wanted} replicas"), || match running()? {
            n if n == wanted => Ok(()),
            n => Err(format!("{n} run")),
        });
    };
    count(3);
    server.ask(&["wait", "--for=condition=Ready", "backend/one", "--timeout=30s"]).unwrap();
    server.ask(&["delete", "backend", "one", "--timeout=60s"]).unwrap();
    count(0);
    server.expect(&["get", "applications.orch.ks-tool.dev", "-o", "name"], "");
}
