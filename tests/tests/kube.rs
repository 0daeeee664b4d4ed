//! Reconcilers of a program of its own, against an API server over the network.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use example_pipeline::{Pipeline, pipeline};
use horchestra::k8s_openapi::api::core::v1::ConfigMap;
use horchestra::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use horchestra::kube::{KubeTarget, connect_with};
use horchestra::kube_core::CustomResourceExt;
use horchestra::runtime::{
    ApplyOptions, DeleteOptions, ReconcilerOptions, Runtime, RuntimeOptions, Scope, Target, TargetError,
    TargetFor, WatchEvent,
};
use horchestra::{GroupVersionKind, Kind, Manifest, reconciler};
use horchestra_tests::{Server, complete, wait_for};
use serde_json::{Value, json};

async fn connect(server: &Server) -> KubeTarget {
    connect_with(&server.kubeconfig(), None).await.unwrap()
}

fn start(arguments: &[&str]) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[&["--no-node"], arguments].concat());
    (dir, server)
}

fn map(name: &str, value: &str) -> Manifest {
    Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}))
    .unwrap()
}

fn maps() -> Kind {
    Kind::of::<ConfigMap>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_runs_to_its_end_from_outside() {
    let (_dir, server) = start(&["--store", "memory"]);
    let target = connect(&server).await;
    let definition = Manifest::from_resource(&Pipeline::crd()).unwrap();
    let kind = Kind::of::<CustomResourceDefinition>();
    target.apply(&kind, &definition, &ApplyOptions::force("example")).await.unwrap();

    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.add_target(TargetFor::Everything, Arc::new(target));
    let options = ReconcilerOptions { finalizer: Some("example.com/pipeline".into()), ..Default::default() };
    runtime.register(Arc::new(reconciler(pipeline)), options).await;

    tokio::task::block_in_place(|| {
        server.ask(&["wait", "--for=condition=Established", "crd/pipelines.examples.com"]).unwrap();
        server.apply(
            "apiVersion: examples.com/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {image: busybox}\n",
        );
        for step in ["p-one", "p-two", "p-three"] {
            wait_for(step, || server.ask(&["get", "job", step]));
            complete(&server, step);
        }
        let message = ["get", "pipeline", "p", "-o", "jsonpath={.status.message}"];
        server.expect(&message, "all jobs have completed");
        let events =
            ["get", "events", "--field-selector=involvedObject.name=p", "-o", "jsonpath={.items[*].reason}"];
        wait_for("its end is an event", || match server.ask(&events)? {
            text if text.contains("Ready") => Ok(()),
            text => Err(text),
        });
        server.ask(&["delete", "pipeline", "p", "--timeout=30s"]).unwrap();
        server.expect(&["get", "jobs", "-o", "name"], "");
    });
    runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_pages_is_whole() {
    let (_dir, server) = start(&["--store", "memory"]);
    let target = connect(&server).await;
    for i in 0..1203 {
        target.apply(&maps(), &map(&format!("m{i}"), "x"), &ApplyOptions::force("test")).await.unwrap();
    }
    let listing = target.list(&maps(), &Scope::Namespace("default".into())).await.unwrap();
    assert_eq!(listing.objects.iter().filter(|o| o.name().starts_with('m')).count(), 1203);
    let one = target.list(&maps(), &Scope::Name("default".into(), "m7".into())).await.unwrap();
    assert_eq!(one.objects.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_begins_after_its_revision_and_goes_on_after_a_restart() {
    use futures::StreamExt;
    let (dir, server) = start(&[]);
    let target = connect(&server).await;
    let apply = |name: &'static str, value: &'static str| {
        let target = target.clone();
        async move { target.apply(&maps(), &map(name, value), &ApplyOptions::force("test")).await }
    };
    apply("before", "x").await.unwrap();
    let scope = Scope::Namespace("default".into());
    let revision = target.list(&maps(), &scope).await.unwrap().revision;
    let mut watch = target.watch(&maps(), &scope, &revision).await.unwrap();
    apply("after", "1").await.unwrap();
    apply("after", "2").await.unwrap();
    target.delete(&maps(), "default", "after", &DeleteOptions::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Applied(o) => seen.push(o.to_value()["data"]["value"].clone()),
            WatchEvent::Deleted(o) => seen.push(json!(format!("{} gone", o.name()))),
            WatchEvent::Bookmark(_) => {}
        }
    }
    assert_eq!(seen, [json!("1"), json!("2"), json!("after gone")]);
    let address = server.url().strip_prefix("https://").unwrap().to_owned();
    assert!(tokio::task::block_in_place(|| server.stop()));
    assert!(watch.next().await.is_none_or(|e| e.is_err()), "it ends with the server");

    let server = Server::start(&dir.path().join("data"), &["--no-node", "--listen", &address]);
    let mut watch = target.watch(&maps(), &scope, &revision).await.unwrap();
    let first = watch.next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Applied(o) if &**o.name() == "after"), "from the old revision on");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_told_apart() {
    let (_dir, server) = start(&["--store", "memory"]);
    let target = connect(&server).await;
    let one = target.apply(&maps(), &map("one", "x"), &ApplyOptions::force("first")).await.unwrap();
    // Fields of somebody else.
    let polite = ApplyOptions { manager: "second".into(), force: false, dry_run: false };
    let error = target.apply(&maps(), &map("one", "y"), &polite).await.unwrap_err();
    assert!(matches!(&error, TargetError::Conflict(text) if text.contains("first")), "{error}");
    // What is not valid.
    let bad = Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "bad", "namespace": "default"}, "data": {"value": {"not": "text"}}}));
    let error = target.apply(&maps(), &bad.unwrap(), &ApplyOptions::force("first")).await.unwrap_err();
    assert!(matches!(error, TargetError::Invalid(_)), "{error:?}");
    // A trial changes nothing.
    let trial = ApplyOptions { dry_run: true, ..ApplyOptions::force("first") };
    target.apply(&maps(), &map("one", "z"), &trial).await.unwrap();
    let now = target.get(&maps(), "default", "one").await.unwrap().unwrap();
    assert_eq!(now.resource_version(), one.resource_version());
    // Another incarnation.
    let wrong = DeleteOptions { uid: Some("another".into()), ..DeleteOptions::default() };
    let error = target.delete(&maps(), "default", "one", &wrong).await.unwrap_err();
    assert!(matches!(error, TargetError::Conflict(_)), "{error:?}");
    // What is not there.
    assert!(target.get(&maps(), "default", "none").await.unwrap().is_none());
    target.delete(&maps(), "default", "none", &DeleteOptions::default()).await.unwrap();
    assert!(target.resolve(&GroupVersionKind::new("no.such", "v1", "Thing")).await.unwrap().is_none());
    assert!(target.resolve(&GroupVersionKind::new("batch", "v9", "Job")).await.unwrap().is_none());
    let job = target.resolve(&GroupVersionKind::new("batch", "", "Job")).await.unwrap().unwrap();
    assert_eq!((&*job.gvk.version, &*job.plural, job.namespaced), ("v1", "jobs", true));
    // A status that has changed meanwhile.
    let text = Value::from("x");
    let job = Manifest::new(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": text}]}}}}));
    let kind = target.resolve(&GroupVersionKind::new("batch", "v1", "Job")).await.unwrap().unwrap();
    let seen = target.apply(&kind, &job.unwrap(), &ApplyOptions::force("first")).await.unwrap();
    let status = |n: i32| json!({"active": n}).as_object().cloned().unwrap();
    target.set_status(&seen, &kind, status(1), "first").await.unwrap();
    let error = target.set_status(&seen, &kind, status(2), "first").await.unwrap_err();
    assert!(matches!(error, TargetError::Conflict(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    std::fs::write(&path, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\ncurrent-context: c\n").unwrap();
    let target = connect_with(&path, None).await.unwrap();
    let error = target.get(&maps(), "default", "x").await.unwrap_err();
    assert!(
        matches!(&error, TargetError::Unavailable { message, .. } if message.contains("refused")),
        "{error:?}"
    );
    let error = connect_with(&dir.path().join("none"), None).await.unwrap_err().to_string();
    assert!(error.contains("none") && error.contains("No such file"), "{error}");
    let error = connect_with(&path, Some("other")).await.unwrap_err().to_string();
    assert!(error.contains("other"), "{error}");
}
