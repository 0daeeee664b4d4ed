//! Reconcilers that come to resources which are there already.

mod support;

use std::sync::Arc;

use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use horchestra_core::{Cluster, DesiredState, Result, reconciler};
use horchestra_runtime::{ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
use serde_json::{Value, json};
use support::*;

fn config_map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "default"},
        "data": {"value": value}})
}

async fn one_map(_: &Thing, _: &Cluster) -> Result<DesiredState> {
    Ok(DesiredState::new().with_value(config_map("wanted")))
}

#[tokio::test]
async fn children_are_healed_also_where_the_watch_was_somebody_elses() {
    async fn looks_at_things(_: &Secret, cluster: &Cluster) -> Result<DesiredState> {
        let count = cluster.list_all::<Thing>("").await?.len();
        Ok(DesiredState::new().with_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "count", "namespace": "default"}, "data": {"things": count.to_string()}})))
    }
    let target = target();
    target.put(thing("t", 1)).unwrap();
    target
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}))
        .unwrap();
    let runtime = runtime(&target, reconciler(looks_at_things), ReconcilerOptions::default()).await;
    let exists = |name: &'static str| target.peek(&reference("ConfigMap", name)).is_some();
    eventually("the reader knows the things", || exists("count"), |e| *e).await;

    runtime.register(Arc::new(reconciler(one_map)), ReconcilerOptions::default()).await;
    eventually("the map", || exists("map"), |e| *e).await;
    target.edit(&reference("ConfigMap", "map"), |v| v["data"]["value"] = "by hand".into()).unwrap();
    let value = || target.peek(&reference("ConfigMap", "map")).unwrap()["data"]["value"].clone();
    eventually("healing", value, |v| v == "wanted").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_there_before_is_never_missed() {
    for _ in 0..200 {
        let target = target();
        target.put(thing("t", 1)).unwrap();
        let runtime = Runtime::new(RuntimeOptions::default());
        runtime.add_target(TargetFor::Everything, Arc::new(target.clone()));
        runtime.register(Arc::new(reconciler(one_map)), ReconcilerOptions::default()).await;
        eventually("the map", || target.peek(&reference("ConfigMap", "map")).is_some(), |e| *e).await;
        runtime.shutdown().await;
    }
}

#[tokio::test]
async fn another_reconciler_for_the_kind_replaces_the_one_before() {
    async fn other(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(DesiredState::new().with_value(config_map("other")))
    }
    let target = target();
    let runtime = runtime(&target, reconciler(one_map), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let value = || target.peek(&reference("ConfigMap", "map")).map(|m| m["data"]["value"].clone());
    eventually("the first", value, |v| *v == Some("wanted".into())).await;
    runtime.register(Arc::new(reconciler(other)), ReconcilerOptions::default()).await;
    eventually("the second", value, |v| *v == Some("other".into())).await;
    let _: Option<ConfigMap> = runtime.cluster("default").get("map").await.unwrap();
}

#[tokio::test]
async fn a_runtime_on_standby_watches_and_writes_nothing() {
    let target = target();
    let options = RuntimeOptions { standby: true, ..RuntimeOptions::default() };
    let runtime = Runtime::new(options);
    runtime.add_target(TargetFor::Everything, Arc::new(target.clone()));
    runtime.register(Arc::new(reconciler(one_map)), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let map = || target.peek(&reference("ConfigMap", "map")).map(|m| m["data"]["value"].clone());
    eventually("its watch", || runtime.watches(), |n| *n == 1).await;
    settle().await;
    assert_eq!(map(), None);

    runtime.activate();
    eventually("the map", map, |m| *m == Some("wanted".into())).await;

    runtime.stand_by().await;
    target.edit(&reference("ConfigMap", "map"), |v| v["data"]["value"] = "by hand".into()).unwrap();
    settle().await;
    assert_eq!(map(), Some("by hand".into()), "somebody else leads now");
    runtime.activate();
    eventually("healing", map, |m| *m == Some("wanted".into())).await;
}
