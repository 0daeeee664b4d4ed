//! Jobs and Deployments on the local node: real images, real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use horchestra_tests::{Server, airway, images, root, wait_for};

fn start(data: &Path) -> Server {
    Server::start(data, &["--images", &images().display().to_string()])
}

fn example(server: &Server, name: &str) {
    let dir = root().join("examples").join(name);
    server.apply(&airway(name));
    server.ask(&["wait", "--for=condition=Ready", "airway", "--all", "--timeout=120s"]).unwrap();
    server.apply(&std::fs::read_to_string(dir.join("instance.yaml")).unwrap());
}

#[test]
fn a_pipeline_runs_to_its_end_and_is_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = start(&data);
    example(&server, "pipeline");
    let message = ["get", "pipeline", "hello", "-o", "jsonpath={.status.message}"];
    server.expect(&message, "all jobs have completed");
    let times = [
        "get",
        "jobs",
        "-o",
        "jsonpath={range .items[*]}{.status.startTime} {.status.completionTime}{\"\\n\"}{end}",
    ];
    let before = server.ask(&times).unwrap();
    assert_eq!(before.lines().count(), 3, "{before}");
    assert!(server.stop());

    // What has ended before a restart has ended after it.
    let server = start(&data);
    server.expect(&message, "all jobs have completed");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(server.ask(&times).unwrap(), before);
}

#[test]
fn a_step_that_fails_stops_the_pipeline_with_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir.path().join("data"));
    example(&server, "pipeline");
    server.apply("---\n{apiVersion: examples.com/v1, kind: Pipeline, metadata: {name: bad}, spec: {image: busybox, fail: two}}");
    wait_for("the reason", || {
        match server.ask(&["get", "pipeline", "bad", "-o", "jsonpath={.status.message}"]) {
            Ok(text) if text.starts_with("stopped at bad-two") && text.contains("code 1") => Ok(()),
            Ok(text) | Err(text) => Err(text),
        }
    });
    assert!(server.ask(&["get", "job", "bad-three"]).is_err(), "the third step must not run");
}

#[test]
fn an_app_is_deployed_with_the_secret_and_goes_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = start(&data);
    example(&server, "app");
    server.expect(
        &["get", "apps.examples.com", "shop", "-o", "jsonpath={.status.message}"],
        "deployed and ready",
    );
    server.ask(&["wait", "--for=condition=Available", "deployment/shop", "--timeout=30s"]).unwrap();
    let log = std::fs::read_to_string(data.join("node/units/logs/default_shop-0/log")).unwrap();
    assert!(log.contains("using shop.default.example"), "{log}");
    server.ask(&["delete", "apps.examples.com", "shop", "--timeout=60s"]).unwrap();
    wait_for("everything to be gone", || {
        let text = server.ask(&[
            "get",
            "deployments,applications.orch.ks-tool.dev,databases,secrets",
            "-o",
            "name",
        ])?;
        let files = std::fs::read_dir(data.join("node/files")).map_or(0, Iterator::count);
        if text.is_empty() && files == 0 {
            Ok(())
        } else {
            Err(format!("{text} and {files} directories of files"))
        }
    });
}

#[test]
fn what_a_node_cannot_do_is_refused_by_its_field() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir.path().join("data"));
    server.apply(
        "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: two}, spec: {template: {spec: {restartPolicy: Never, \
         containers: [{name: a, image: busybox}, {name: b, image: busybox}]}}}}",
    );
    let message = ["get", "job", "two", "-o", "jsonpath={.status.conditions[?(@.type=='Failed')].message}"];
    server.expect(
        &message,
        "spec.template.spec.containers: must have exactly one container; an Application is one program",
    );
    server.apply("---\n{apiVersion: orch.ks-tool.dev/v1, kind: Application, metadata: {name: none}, spec: {image: 'nowhere:1'}}");
    wait_for("the reason", || {
        let text =
            server.ask(&["get", "application.orch.ks-tool.dev", "none", "-o", "jsonpath={.status}"])?;
        if text.contains("ImagePullError") && text.contains("has no layout of it") {
            Ok(())
        } else {
            Err(text)
        }
    });
}

#[test]
fn a_directory_of_images_that_is_not_there_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let mut up = std::process::Command::new(horchestra_tests::program());
    up.args(["up", "--listen", "127.0.0.1:0", "--store", "memory", "--data"]).arg(dir.path().join("data"));
    let output = up.arg("--images").arg(&missing).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("missing is not a directory"), "{text}");
}

#[test]
fn another_command_is_another_run_also_after_the_first_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir.path().join("data"));
    let app = |code: u8| {
        server.apply(&format!(
            "---\n{{apiVersion: orch.ks-tool.dev/v1, kind: Application, metadata: {{name: once}}, \
             spec: {{image: busybox, restartPolicy: Never, command: [sh, -c, 'exit {code}']}}}}"
        ));
        let phase = ["get", "application.orch.ks-tool.dev", "once", "-o", "jsonpath={.status.phase}"];
        server.expect(&phase, if code == 0 { "Succeeded" } else { "Failed" });
    };
    [3, 0, 4].into_iter().for_each(app);
}
