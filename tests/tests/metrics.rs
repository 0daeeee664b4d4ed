//! What a monitoring system reads from a running controller.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;

use horchestra_tests::{Server, airway, wait_for};

#[test]
fn everything_is_counted_under_the_names_that_dashboards_know() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &["--store", "memory"]);
    server.apply(&airway("pipeline"));
    server.ask(&["wait", "--for=condition=Ready", "airway", "--all", "--timeout=60s"]).unwrap();
    server.apply(
        "---\n{apiVersion: examples.com/v1, kind: Pipeline, metadata: {name: p}, spec: {image: none}}",
    );
    wait_for("a run is counted", || {
        let text = server.ask(&["get", "--raw", "/metrics"])?;
        let counted = |name: &str| text.lines().any(|l| l.starts_with(name) && !l.ends_with(" 0"));
        let names = [
            // Of controller-runtime, for the flights and for the node.
            r#"controller_runtime_reconcile_total{controller="pipelines.examples.com",result="success"}"#,
            r#"controller_runtime_reconcile_total{controller="applications""#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="pipelines.examples.com"}"#,
            r#"controller_runtime_max_concurrent_reconciles{controller="pipelines.examples.com"}"#,
            r#"workqueue_adds_total{controller="pipelines.examples.com"}"#,
            // Of kube-apiserver.
            r#"apiserver_request_total{verb="list",resource="airways",code="200"}"#,
            "horchestra_store_revision",
        ];
        match names.iter().find(|name| !counted(name)) {
            None => Ok(()),
            Some(missing) => Err(format!("{missing} is not in\n{text}")),
        }
    });
    let text = server.ask(&["get", "--raw", "/metrics"]).unwrap();
    let families: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")).collect();
    assert_eq!(families.len(), families.iter().collect::<HashSet<_>>().len(), "each family stands once");
    assert!(text.ends_with("# EOF\n"));
}
