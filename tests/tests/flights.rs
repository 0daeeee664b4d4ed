//! Airways from `kubectl apply` to the last status, with jobs finished by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use horchestra_tests::{Server, airway, complete, wait_for};

fn start(arguments: &[&str]) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), arguments);
    (dir, server)
}

const PIPELINE: &str = "
apiVersion: examples.com/v1
kind: Pipeline
metadata: {name: p, namespace: default}
spec: {image: busybox}
";

fn ready(server: &Server, airway: &str) {
    server.ask(&["wait", "--for=condition=Ready", "airway", airway, "--timeout=120s"]).unwrap();
}

#[test]
fn a_pipeline_runs_three_jobs_one_after_the_other() {
    let (dir, server) = start(&["--no-node"]);
    server.apply(&airway("pipeline"));
    ready(&server, "pipelines.examples.com");
    server.apply(PIPELINE);
    let jobs = ["get", "jobs", "-o", "jsonpath={.items[*].metadata.name}"];
    server.expect(&jobs, "p-one");
    complete(&server, "p-one");
    server.expect(&jobs, "p-one p-two");
    // A restart in the middle loses nothing.
    let data = dir.path().join("data");
    server.kill();
    let server = Server::start(&data, &["--no-node"]);
    complete(&server, "p-two");
    wait_for("the third job", || server.ask(&["get", "job", "p-three"]));
    complete(&server, "p-three");
    server.expect(&["get", "pipeline", "p", "-o", "jsonpath={.status.message}"], "all jobs have completed");
    server.ask(&["wait", "--for=condition=Ready", "pipeline/p", "--timeout=30s"]).unwrap();
    assert!(server.stop(), "it ends well when it is told to");
}

#[test]
fn children_and_instances_go_with_their_airway() {
    let (_dir, server) = start(&["--no-node", "--store", "memory"]);
    server.apply(&airway("pipeline"));
    ready(&server, "pipelines.examples.com");
    server.expect(
        &["get", "airway", "pipelines.examples.com", "-o", "jsonpath={.metadata.finalizers}"],
        r#"["yoke.cd/strip.airway"]"#,
    );
    server.apply(PIPELINE);
    wait_for("the first job", || server.ask(&["get", "job", "p-one"]));
    server.ask(&["delete", "job", "p-one"]).unwrap();
    wait_for("the deleted job comes back", || server.ask(&["get", "job", "p-one"]));
    server.ask(&["delete", "airway", "pipelines.examples.com", "--timeout=60s"]).unwrap();
    for gone in ["crd/pipelines.examples.com", "job/p-one"] {
        wait_for(&format!("{gone} is gone"), || match server.ask(&["get", gone, "--ignore-not-found"]) {
            Ok(text) if text.is_empty() => Ok(()),
            Ok(text) | Err(text) => Err(text),
        });
    }
}

#[test]
fn a_failed_job_stops_the_pipeline_with_the_reason() {
    let (_dir, server) = start(&["--no-node", "--store", "memory"]);
    server.apply(&airway("pipeline"));
    ready(&server, "pipelines.examples.com");
    server.apply(PIPELINE);
    wait_for("the first job", || server.ask(&["get", "job", "p-one"]));
    let now = "2026-01-01T00:00:00Z";
    let status = format!(
        r#"{{"status":{{"failed":1,"startTime":"{now}","conditions":[
        {{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":"{now}","lastProbeTime":"{now}"}},
        {{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"exit code 3","lastTransitionTime":"{now}","lastProbeTime":"{now}"}}]}}}}"#
    );
    server.ask(&["patch", "job", "p-one", "--subresource=status", "--type=merge", "-p", &status]).unwrap();
    wait_for("the reason", || {
        match server.ask(&["get", "pipeline", "p", "-o", "jsonpath={.status.message}"]) {
            Ok(text) if text.starts_with("stopped at p-one") && text.contains("exit code 3") => Ok(()),
            Ok(text) | Err(text) => Err(text),
        }
    });
    assert_eq!(server.ask(&["get", "jobs", "-o", "jsonpath={.items[*].metadata.name}"]).unwrap(), "p-one");
}

#[test]
fn bad_airways_are_refused_with_the_field_and_the_remedy() {
    let (_dir, server) = start(&["--no-node", "--store", "memory"]);
    let good = airway("pipeline");
    let refused = |manifest: &str| {
        let output = server.kubectl(&["apply", "-f", "-"], manifest);
        assert!(!output.status.success(), "accepted:\n{manifest}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refused(&good.replace("storage: true", "storage: false"));
    assert!(text.contains("admission webhook \"airways.yoke.cd\" denied the request"), "{text}");
    assert!(
        text.contains("spec.template.versions: must have exactly one version with storage: true"),
        "{text}"
    );
    let text = refused(&good.replace("pipeline.wasm", "nowhere.wasm"));
    assert!(text.contains("failed to validate flight url"), "{text}");
    let text = refused(&good.replace("mode: dynamic", "mode: frantic"));
    assert!(text.contains("spec.mode"), "{text}");
    assert_eq!(server.ask(&["get", "airways", "-o", "name"]).unwrap(), "", "nothing is half-applied");
}

#[test]
fn an_instance_with_a_wrong_checksum_says_so() {
    let (_dir, server) = start(&["--no-node", "--store", "memory"]);
    server.apply(&airway("pipeline"));
    ready(&server, "pipelines.examples.com");
    server
        .ask(&[
            "patch",
            "airway",
            "pipelines.examples.com",
            "--type=merge",
            "-p",
            r#"{"spec":{"wasmUrls":{"flightChecksum":"applebottomjeans"}}}"#,
        ])
        .unwrap();
    wait_for("the verdict", || {
        let text = server.ask(&[
            "get",
            "airway",
            "pipelines.examples.com",
            "-o",
            "jsonpath={.status.conditions}",
        ])?;
        if text.contains(r#"cannot verify module against expected checksum: wanted \"applebottomjeans\""#) {
            Ok(())
        } else {
            Err(text)
        }
    });
}
