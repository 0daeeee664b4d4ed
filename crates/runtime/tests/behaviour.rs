//! What the runtime promises, one promise a test.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use horchestra_core::plan::{Adopt, PlanOptions};
use horchestra_core::{Cluster, DesiredState, Error, Reconciler, Result, reconciler};
use horchestra_runtime::{Journal, Reaction, ReconcilerOptions, Replay, Runtime, RuntimeOptions, TargetFor};
use serde_json::{Value, json};
use support::*;

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"value": value}})
}

/// Wants as many ConfigMaps as its size says, and counts its runs.
#[derive(Default, Clone)]
struct Sized(Arc<AtomicUsize>);

#[async_trait]
impl Reconciler for Sized {
    type Resource = Thing;

    async fn reconcile(&self, thing: &Thing, _: &Cluster) -> Result<DesiredState> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(match thing.spec.size {
            0 => DesiredState::nothing(),
            n => (0..n).fold(DesiredState::new(), |d, i| d.with_value(config_map(&format!("c{i}"), "x"))),
        })
    }
}

fn maps(target: &horchestra_runtime::testing::MemoryTarget) -> Vec<String> {
    target.names(&"ConfigMap".parse().unwrap())
}

#[tokio::test]
async fn what_is_no_longer_desired_is_removed_and_drift_is_healed() {
    let target = target();
    let _runtime = runtime(&target, Sized::default(), ReconcilerOptions::default()).await;
    target.put(thing("t", 3)).unwrap();
    eventually("three maps", || maps(&target), |m| m.len() == 3).await;

    target.edit(&reference("ConfigMap", "c1"), |v| v["data"]["value"] = "by hand".into()).unwrap();
    let value = || target.peek(&reference("ConfigMap", "c1")).unwrap()["data"]["value"].clone();
    eventually("healing", value, |v| v == "x").await;

    target.edit(&reference("Thing.example.com", "t"), |v| v["spec"]["size"] = 1.into()).unwrap();
    eventually("pruning", || maps(&target), |m| *m == ["c0"]).await;
    target.edit(&reference("Thing.example.com", "t"), |v| v["spec"]["size"] = 0.into()).unwrap();
    eventually("nothing", || maps(&target), Vec::is_empty).await;
}

#[tokio::test]
async fn it_runs_again_exactly_when_something_it_looked_at_changes() {
    let target = target();
    let runs = Sized::default();
    let runtime = runtime(&target, runs.clone(), ReconcilerOptions::default()).await;
    target.put(thing("t", 2)).unwrap();
    eventually("readiness", || ready(&target, &reference("Thing.example.com", "t")), |r| r.0 == "True").await;
    settle().await;
    let before = runs.0.load(Ordering::SeqCst);
    assert_eq!(before, 1, "its own writes are no reason for another run");

    for i in 0..20 {
        target.put(config_map("stranger", &i.to_string())).unwrap();
    }
    settle().await;
    assert_eq!(runs.0.load(Ordering::SeqCst), before, "strangers are no reason");

    target.edit(&reference("ConfigMap", "c0"), |v| v["metadata"]["labels"]["x"] = "y".into()).unwrap();
    eventually("a run", || runs.0.load(Ordering::SeqCst), |n| *n == before + 1).await;
    assert!(runtime.metrics().contains("controller_runtime_reconcile_total"), "{}", runtime.metrics());
}

#[tokio::test]
async fn an_answer_that_only_has_a_status_leaves_what_exists_alone() {
    async fn sometimes(thing: &Thing, _: &Cluster) -> Result<DesiredState> {
        let desired = DesiredState::new().status(json!({"message": "said"}));
        Ok(if thing.spec.size > 0 { desired.with_value(config_map("c", "x")) } else { desired })
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(sometimes), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    eventually("the map", || maps(&target), |m| m.len() == 1).await;
    target.edit(&reference("Thing.example.com", "t"), |v| v["spec"]["size"] = 0.into()).unwrap();
    settle().await;
    assert_eq!(maps(&target), ["c"]);
}

#[tokio::test]
async fn an_empty_answer_is_refused_with_the_remedy() {
    async fn forgetful(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(DesiredState::new())
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(forgetful), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let t = reference("Thing.example.com", "t");
    let state = eventually("an error", || ready(&target, &t), |r| r.1 == "Error").await;
    assert!(state.2.contains("DesiredState::nothing()"), "{state:?}");
}

#[tokio::test]
async fn reads_are_never_older_than_its_own_writes() {
    async fn reads_itself(thing: &Thing, cluster: &Cluster) -> Result<DesiredState> {
        let seen = cluster.get::<ConfigMap>("own").await?.and_then(|c| c.data).unwrap_or_default();
        let message = if seen.contains_key("value") { "seen" } else { "missing" };
        Ok(DesiredState::new()
            .with_value(config_map("own", &thing.spec.size.to_string()))
            .status(json!({"message": message})))
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(reads_itself), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let message = || target.peek(&reference("Thing.example.com", "t")).unwrap()["status"]["message"].clone();
    eventually("it sees its own write", message, |m| m == "seen").await;
}

#[tokio::test]
async fn panics_and_overlong_runs_stay_with_their_resource() {
    async fn moody(thing: &Thing, _: &Cluster) -> Result<DesiredState> {
        match thing.spec.size {
            1 => panic!("on purpose"),
            2 => std::future::pending().await,
            _ => Ok(DesiredState::new().with_value(config_map("fine", "x"))),
        }
    }
    let target = target();
    let options = ReconcilerOptions { timeout: Duration::from_millis(50), ..ReconcilerOptions::default() };
    let runtime = runtime(&target, reconciler(moody), options).await;
    for (name, size) in [("panics", 1), ("hangs", 2), ("works", 3)] {
        target.put(thing(name, size)).unwrap();
    }
    eventually("the good one", || maps(&target), |m| *m == ["fine"]).await;
    let error = |name: &str| ready(&target, &reference("Thing.example.com", name)).2;
    eventually("the panic", || error("panics"), |e| e.contains("panicked: on purpose")).await;
    eventually("the time-out", || error("hangs"), |e| e.contains("did not answer within 50ms")).await;
    let metrics = runtime.metrics();
    assert!(
        metrics.contains("controller_runtime_reconcile_panics_total{controller=\"Thing.example.com\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_finalizer_removes_everything_in_reverse_order_of_stages() {
    async fn staged(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(DesiredState::new()
            .with_value(config_map("first", "x"))
            .then()
            .with_value(config_map("second", "x")))
    }
    let target = target();
    let options =
        ReconcilerOptions { finalizer: Some("example.com/finalizer".into()), ..ReconcilerOptions::default() };
    let _runtime = runtime(&target, reconciler(staged), options).await;
    target.put(thing("t", 1)).unwrap();
    eventually("both maps", || maps(&target), |m| m.len() == 2).await;
    // Somebody else holds the second map for a while.
    target
        .edit(&reference("ConfigMap", "second"), |v| {
            v["metadata"]["finalizers"] = json!(["example.com/hold"])
        })
        .unwrap();
    let t = reference("Thing.example.com", "t");
    target.edit(&t, |v| v["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into()).unwrap();
    let state = eventually("terminating", || ready(&target, &t), |r| r.1 == "Terminating").await;
    assert!(state.2.contains("ConfigMap:second"), "{state:?}");
    assert_eq!(maps(&target), ["first", "second"], "the first stage waits for the second to be gone");
    target.edit(&reference("ConfigMap", "second"), |v| v["metadata"]["finalizers"] = json!([])).unwrap();
    eventually("the maps gone", || maps(&target), Vec::is_empty).await;
    eventually("the thing gone", || target.peek(&t), Option::is_none).await;
}

#[tokio::test]
async fn stages_wait_for_readiness() {
    async fn staged(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}});
        Ok(DesiredState::new().with_value(job).then().with_value(config_map("after", "x")))
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(staged), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let t = reference("Thing.example.com", "t");
    let state = eventually("waiting", || ready(&target, &t), |r| r.2.contains("migrate")).await;
    assert!(state.2.starts_with("waiting for: default/Job.batch:migrate: "), "{state:?}");
    assert!(maps(&target).is_empty());
    complete(&target, "migrate");
    eventually("the second stage", || maps(&target), |m| *m == ["after"]).await;
}

#[tokio::test]
async fn an_object_of_another_release_is_a_conflict_and_stays_as_it_is() {
    let target = target();
    let _runtime = runtime(&target, Sized::default(), ReconcilerOptions::default()).await;
    target.put(thing("a", 1)).unwrap();
    eventually("the map", || maps(&target), |m| m.len() == 1).await;
    let before = target.peek(&reference("ConfigMap", "c0"));
    target.put(thing("b", 1)).unwrap();
    let state =
        eventually("a conflict", || ready(&target, &reference("Thing.example.com", "b")), |r| r.1 == "Error")
            .await;
    assert!(state.2.contains("already owned by \"default/example.com.Thing.default.a\""), "{state:?}");
    settle().await;
    assert_eq!(target.peek(&reference("ConfigMap", "c0")), before);
}

#[tokio::test]
async fn an_unowned_object_is_adopted_only_if_allowed() {
    for (adopt, taken) in [(Adopt::Never, false), (Adopt::Unowned, true)] {
        let target = target();
        target.put(config_map("c0", "theirs")).unwrap();
        let plan = PlanOptions { adopt, ..PlanOptions::default() };
        let _runtime =
            runtime(&target, Sized::default(), ReconcilerOptions { plan, ..ReconcilerOptions::default() })
                .await;
        target.put(thing("t", 1)).unwrap();
        eventually("a verdict", || ready(&target, &reference("Thing.example.com", "t")), |r| !r.1.is_empty())
            .await;
        let value = target.peek(&reference("ConfigMap", "c0")).unwrap()["data"]["value"].clone();
        assert_eq!(value, if taken { "x" } else { "theirs" });
    }
}

#[tokio::test]
async fn time_is_a_read_that_wakes_by_itself() {
    async fn patient(thing: &Thing, cluster: &Cluster) -> Result<DesiredState> {
        let late = cluster.older_than(thing, Duration::from_millis(1200)).await?;
        Ok(DesiredState::new().status(json!({"message": if late { "late" } else { "early" }})))
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(patient), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    let message = || target.peek(&reference("Thing.example.com", "t")).unwrap()["status"]["message"].clone();
    eventually("time passes", message, |m| m == "late").await;
}

#[tokio::test]
async fn in_standard_mode_children_are_left_alone_once_ready() {
    let target = target();
    let options = ReconcilerOptions { reaction: Reaction::Standard, ..ReconcilerOptions::default() };
    let _runtime = runtime(&target, Sized::default(), options).await;
    target.put(thing("t", 1)).unwrap();
    eventually("readiness", || ready(&target, &reference("Thing.example.com", "t")), |r| r.0 == "True").await;
    settle().await;
    target.edit(&reference("ConfigMap", "c0"), |v| v["data"]["value"] = "by hand".into()).unwrap();
    settle().await;
    assert_eq!(target.peek(&reference("ConfigMap", "c0")).unwrap()["data"]["value"], "by hand");
}

#[tokio::test]
async fn a_watch_ends_when_nobody_reads_it_any_more() {
    async fn reads_one(thing: &Thing, cluster: &Cluster) -> Result<DesiredState> {
        if thing.spec.size > 0 {
            cluster.get::<Secret>("one").await?;
        }
        Ok(DesiredState::new().status(json!({"message": thing.spec.size.to_string()})))
    }
    let target = target();
    let runtime = runtime(&target, reconciler(reads_one), ReconcilerOptions::default()).await;
    for i in 0..5 {
        target.put(thing(&format!("t{i}"), 1)).unwrap();
    }
    eventually("one watch of things, one of the secret", || runtime.watches(), |n| *n == 2).await;
    settle().await;
    assert_eq!(runtime.watches(), 2, "five readers share one watch");
    for i in 0..5 {
        target
            .edit(&reference("Thing.example.com", &format!("t{i}")), |v| v["spec"]["size"] = 0.into())
            .unwrap();
    }
    eventually("the watch of the secret ends", || runtime.watches(), |n| *n == 1).await;
}

#[tokio::test]
async fn a_journal_replays_without_the_world_and_shows_the_first_difference() {
    async fn copies(_: &Thing, cluster: &Cluster) -> Result<DesiredState> {
        let secret = cluster.get::<Secret>("source").await?.and_then(|s| s.data).unwrap_or_default();
        let text =
            secret.get("password").map(|b| String::from_utf8_lossy(&b.0).into_owned()).unwrap_or_default();
        Ok(DesiredState::new().with_value(config_map("copy", &text)))
    }
    async fn changed(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(DesiredState::new().with_value(config_map("copy", "other")))
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let target = target();
    target
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "source", "namespace": "default"}, "data": {"password": "aHVudGVyMi1odW50ZXIy"}}))
        .unwrap();
    let runtime = Runtime::new(RuntimeOptions {
        journal: Some(Journal::open(&path).unwrap()),
        ..RuntimeOptions::default()
    });
    runtime.add_target(TargetFor::Everything, Arc::new(target.clone()));
    runtime.register(Arc::new(reconciler(copies)), ReconcilerOptions::default()).await;
    target.put(thing("t", 1)).unwrap();
    eventually("the copy", || maps(&target), |m| m.len() == 1).await;
    runtime.shutdown().await;

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMi1odW50ZXIy"), "{text}");
    let entries: Vec<_> = Replay::open(&path).unwrap().collect::<Result<_, Error>>().unwrap();
    assert!(!entries.is_empty());
    for entry in &entries {
        assert_eq!(Replay::run(entry, &reconciler(copies)).await.unwrap(), None);
    }
    let last = entries.last().unwrap();
    let difference = Replay::run(last, &reconciler(changed)).await.unwrap().unwrap();
    assert_eq!(difference.path, "stages[0][0].data.value");
    assert_eq!(difference.replayed, "other");
}

#[tokio::test]
async fn a_resource_that_another_release_created_keeps_what_that_applied() {
    async fn nested(thing: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(match thing.spec.size {
            0 => DesiredState::new().with_value(config_map("leaf", "x")),
            n => {
                let mut child = self::thing("child", n - 1);
                child["metadata"]["labels"] = json!({"from": "parent"});
                DesiredState::new().with_value(child)
            }
        })
    }
    let target = target();
    let options =
        ReconcilerOptions { finalizer: Some("example.com/finalizer".into()), ..ReconcilerOptions::default() };
    let _runtime = runtime(&target, reconciler(nested), options).await;
    target.put(thing("parent", 1)).unwrap();
    eventually("the grandchild", || maps(&target), |m| *m == ["leaf"]).await;
    settle().await;
    let child = target.peek(&reference("Thing.example.com", "child")).unwrap();
    assert_eq!((&child["spec"]["size"], &child["metadata"]["labels"]["from"]), (&json!(0), &json!("parent")));
    assert_eq!(child["metadata"]["finalizers"], json!(["example.com/finalizer"]));
}
