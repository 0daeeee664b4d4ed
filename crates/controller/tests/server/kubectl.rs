//! The real kubectl.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::definitions::definition;
use super::support::Server;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {app: x}}\ndata: {k: v1}\n";
const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: busybox, command: [\"true\"], ports: [{containerPort: 80}]}
";
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers:
      - {name: c, image: \"busybox:1\", env: [{name: A, value: \"1\"}]}
";
const THING: &str = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {size: 3}\n";

/// kubectl blocks its thread, the server needs others.
async fn run(test: impl FnOnce(&Server) + Send + 'static) {
    let server = Server::start().await;
    tokio::task::spawn_blocking(move || test(&server)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_get_delete() {
    run(|server| {
        let kubectl = server.kubectl();
        assert_eq!(kubectl.run_with(&["apply", "-f", "-"], MAP), "configmap/a created\n");
        assert_eq!(kubectl.run_with(&["apply", "-f", "-"], MAP), "configmap/a unchanged\n");
        let table = kubectl.run(&["get", "configmaps"]);
        let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["NAME", "DATA", "AGE"]);
        assert_eq!(rows[1][..2], ["a", "1"]);
        let yaml = kubectl.run(&["get", "cm/a", "-o", "yaml"]);
        assert!(yaml.contains("k: v1"), "{yaml}");
        assert_eq!(kubectl.run(&["get", "cm", "-l", "app=x", "-o", "name"]), "configmap/a\n");
        assert_eq!(kubectl.run(&["get", "cm", "-l", "app=y", "-o", "name"]), "");
        assert_eq!(
            kubectl.run(&["get", "cm", "--field-selector", "metadata.name=a", "-o", "name"]),
            "configmap/a\n"
        );
        assert_eq!(kubectl.run(&["delete", "cm", "a"]), "configmap \"a\" deleted\n");
        let missing = kubectl.fails(&["get", "cm", "a"], "");
        assert_eq!(missing, "Error from server (NotFound): configmaps \"a\" not found\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_their_kinds() {
    run(|server| {
        let kubectl = server.kubectl();
        let early = kubectl.fails(&["apply", "-f", "-"], THING);
        assert!(early.contains("no matches for kind \"Thing\" in version \"example.com/v1\""), "{early}");
        kubectl.run_with(&["apply", "-f", "-"], &definition().to_string());
        kubectl.run(&["wait", "--for=condition=established", "crd/things.example.com", "--timeout=20s"]);
        kubectl.run_with(&["apply", "-f", "-"], THING);
        let mode = kubectl.run(&["get", "th", "t", "-o", "jsonpath={.spec.mode}"]);
        assert_eq!(mode, "fast");
        let changed = THING.replace("size: 3", "size: 4");
        assert_eq!(kubectl.run_with(&["apply", "-f", "-"], &changed), "thing.example.com/t configured\n");
        assert!(
            kubectl.run(&["api-resources"]).lines().any(|l| l.starts_with("things") && l.ends_with("Thing"))
        );
        let explained = kubectl.run(&["explain", "thing.spec.size"]);
        assert!(explained.contains("FIELD: size <integer>"), "{explained}");
        let explained = kubectl.run(&["explain", "job.spec.template.spec.containers.image"]);
        assert!(explained.contains("Container image name"), "{explained}");
        let wrong = kubectl.fails(&["apply", "-f", "-"], &THING.replace("size: 3", "sise: 3"));
        assert!(wrong.contains("unknown field \"spec.sise\""), "{wrong}");
        let wrong = kubectl.fails(&["apply", "-f", "-"], &THING.replace("size: 3", "size: 0"));
        assert!(wrong.contains("spec.size: Invalid value: 0"), "{wrong}");
        kubectl.run(&["delete", "crd", "things.example.com", "--timeout=20s"]);
        kubectl.fails(&["get", "things"], "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_and_diff() {
    run(|server| {
        let kubectl = server.kubectl();
        for manifest in [MAP, JOB, DEPLOYMENT] {
            kubectl.run_with(&["apply", "--server-side", "-f", "-"], manifest);
            let before = kubectl.run(&["get", "cm,job,deploy", "-o", "yaml", "--show-managed-fields"]);
            kubectl.run_with(&["apply", "--server-side", "-f", "-"], manifest);
            assert_eq!(kubectl.run_with(&["diff", "--server-side", "-f", "-"], manifest), "");
            let after = kubectl.run(&["get", "cm,job,deploy", "-o", "yaml", "--show-managed-fields"]);
            assert_eq!(before, after, "applying again and comparing changes nothing");
        }
        let changed = MAP.replace("v1}", "v2}");
        let conflict =
            kubectl.fails(&["apply", "--server-side", "--field-manager=other", "-f", "-"], &changed);
        assert!(conflict.contains("conflict with \"kubectl\": .data.k"), "{conflict}");
        let out = kubectl.try_run(&["diff", "--server-side", "-f", "-"], &changed).unwrap_err();
        assert!(out.contains("+  k: v2"), "{out}");
        assert_eq!(kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data.k}"]), "v1");
        kubectl.run_with(
            &["apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"],
            &changed,
        );
        assert_eq!(kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data.k}"]), "v2");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create_refuses_unknown_fields() {
    run(|server| {
        let kubectl = server.kubectl();
        let odd = MAP.replace("\ndata:", "\ndate:");
        let error = kubectl.fails(&["create", "-f", "-"], &odd);
        assert!(error.contains("unknown field \"date\""), "{error}");
        kubectl.run_with(&["create", "--validate=ignore", "-f", "-"], &odd);
        assert_eq!(kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.date}"]), "");
        let twice = kubectl.fails(&["create", "-f", "-"], MAP);
        assert!(twice.contains("(AlreadyExists)"), "{twice}");
        let nowhere = kubectl.fails(&["create", "-n", "nowhere", "-f", "-"], MAP);
        assert!(nowhere.contains("namespaces \"nowhere\" not found"), "{nowhere}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_labels_annotations() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run_with(&["apply", "-f", "-"], MAP);
        kubectl.run(&["label", "cm", "a", "tier=front"]);
        kubectl.run(&["label", "cm", "a", "app-"]);
        kubectl.run(&["annotate", "cm", "a", "note=hello there"]);
        let labels = kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.metadata.labels}"]);
        assert_eq!(serde_json::from_str::<Value>(&labels).unwrap(), json!({"tier": "front"}));
        kubectl.run(&["patch", "cm", "a", "--type=merge", "-p", r#"{"data":{"k":null,"n":"1"}}"#]);
        kubectl.run(&[
            "patch",
            "cm",
            "a",
            "--type=json",
            "-p",
            r#"[{"op":"add","path":"/data/m","value":"2"}]"#,
        ]);
        let data = kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data}"]);
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), json!({"n": "1", "m": "2"}));
        let editor = server.script(r#"sed -i 's/  m: "2"/  m: "9"/' "$1""#);
        let edited = kubectl.command(&["edit", "cm", "a"]).env("EDITOR", editor).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&edited.stdout), "configmap/a edited\n", "{edited:?}");
        assert_eq!(kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data.m}"]), "9");
        kubectl.run_with(&["replace", "-f", "-"], MAP);
        let data = kubectl.run(&["get", "cm", "a", "-o", "jsonpath={.data}"]);
        assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), json!({"k": "v1"}));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_side_apply_merges_lists() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run_with(&["apply", "-f", "-"], DEPLOYMENT);
        kubectl.run(&["set", "env", "deployment/d", "B=2"]);
        let changed = DEPLOYMENT.replace("value: \"1\"", "value: \"3\"").replace("busybox:1", "busybox:2");
        assert_eq!(kubectl.run_with(&["apply", "-f", "-"], &changed), "deployment.apps/d configured\n");
        let containers =
            kubectl.run(&["get", "deploy", "d", "-o", "jsonpath={.spec.template.spec.containers}"]);
        let containers: Value = serde_json::from_str(&containers).unwrap();
        assert_eq!(containers.as_array().unwrap().len(), 1);
        assert_eq!(containers[0]["image"], "busybox:2");
        assert_eq!(containers[0]["env"], json!([{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]));
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n";
        kubectl.run_with(&["apply", "-f", "-"], secret);
        kubectl.run_with(&["apply", "-f", "-"], &secret.replace("a: b", "a: c"));
        assert_eq!(kubectl.run(&["get", "secret", "s", "-o", "jsonpath={.data.a}"]), "Yw==");
        let patch = r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"busybox:3"}]}}}}"#;
        kubectl.run(&["patch", "deploy", "d", "-p", patch]);
        let env = kubectl.run(&[
            "get",
            "deploy",
            "d",
            "-o",
            "jsonpath={.spec.template.spec.containers[0].env[1].name}",
        ]);
        assert_eq!(env, "B", "other fields stay");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_waited_for() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run_with(&["apply", "-f", "-"], JOB);
        let mut wait = kubectl.command(&["wait", "--for=condition=complete", "job/j", "--timeout=30s"]);
        let wait = wait.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = r#"{"status":{"succeeded":1,"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:40Z","conditions":[{"type":"Complete","status":"True"}]}}"#;
        kubectl.run(&["patch", "job", "j", "--subresource=status", "--type=merge", "-p", status]);
        let done = wait.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let table = kubectl.run(&["get", "jobs", "-o", "wide"]);
        let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["j", "Complete", "1/1", "100s"]);
        assert_eq!(row[5..7], ["c", "busybox"]);
        kubectl.run(&["delete", "job", "j", "--timeout=20s"]);
        kubectl.run_with(&["apply", "-f", "-"], JOB);
        kubectl.run(&["delete", "job", "j", "--cascade=foreground", "--timeout=20s"]);
        kubectl.run_with(&["apply", "-f", "-"], DEPLOYMENT);
        kubectl.run(&["scale", "deployment/d", "--replicas=5"]);
        assert_eq!(kubectl.run(&["get", "deploy", "d", "-o", "jsonpath={.spec.replicas}"]), "5");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_show_changes() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run_with(&["apply", "-f", "-"], MAP);
        let mut watch = kubectl.command(&["get", "cm", "-w"]);
        let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("NAME"));
        assert!(lines.next().unwrap().starts_with("a "));
        kubectl.run(&["create", "configmap", "b", "--from-literal=x=y"]);
        assert!(lines.next().unwrap().starts_with("b "));
        kubectl.run(&["delete", "cm", "b"]);
        assert!(lines.next().unwrap().starts_with("b "));
        watch.kill().unwrap();
        watch.wait().unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn imperative_creates_send_protobuf() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run(&["create", "job", "j", "--image=busybox:1", "--", "echo", "hello"]);
        let job: Value = serde_json::from_str(&kubectl.run(&["get", "job", "j", "-o", "json"])).unwrap();
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["echo", "hello"]));
        assert_eq!(container["image"], "busybox:1");
        assert_eq!(container.get("stdin"), None, "zeros that Go leaves out of JSON are left out");
        assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
        kubectl.run(&["create", "deployment", "d", "--image=nginx", "--replicas=3", "--port=80"]);
        let deployment: Value =
            serde_json::from_str(&kubectl.run(&["get", "deploy", "d", "-o", "json"])).unwrap();
        assert_eq!(deployment["spec"]["replicas"], 3);
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app": "d"}));
        let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
        assert_eq!(*ports, json!([{"containerPort": 80, "protocol": "TCP"}]));
        kubectl.run(&["create", "deployment", "none", "--image=nginx", "--replicas=0"]);
        assert_eq!(kubectl.run(&["get", "deploy", "none", "-o", "jsonpath={.spec.replicas}"]), "0");
        kubectl.run(&["create", "secret", "generic", "s", "--from-literal=a=b"]);
        assert_eq!(kubectl.run(&["get", "secret", "s", "-o", "jsonpath={.data.a}"]), "Yg==");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_and_chunks() {
    run(|server| {
        let kubectl = server.kubectl();
        kubectl.run(&["create", "namespace", "n"]);
        for n in 0..7 {
            kubectl.run(&["create", "-n", "n", "secret", "generic", &format!("s{n}"), "--from-literal=a=b"]);
        }
        let names = kubectl.run(&["get", "secrets", "-n", "n", "--chunk-size=3", "-o", "name"]);
        assert_eq!(names.lines().count(), 7);
        assert_eq!(kubectl.run(&["get", "secrets", "-A", "--no-headers"]).lines().count(), 7);
        kubectl.run(&["delete", "namespace", "n", "--timeout=20s"]);
        assert_eq!(kubectl.run(&["get", "secrets", "-A", "-o", "name"]), "");
        kubectl.run(&["get", "--raw", "/readyz"]);
        let versions = kubectl.run(&["api-versions"]);
        assert!(versions.lines().any(|v| v == "batch/v1"), "{versions}");
    })
    .await;
}
