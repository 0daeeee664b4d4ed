//! The two scenarios that everything is for, on a target in memory.

mod support;

use horchestra_core::k8s_openapi::api::apps::v1::Deployment;
use horchestra_core::k8s_openapi::api::batch::v1::Job;
use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use horchestra_core::{Cluster, Condition, DesiredState, Error, Result, reconciler};
use horchestra_runtime::ReconcilerOptions;
use serde_json::{Value, json};
use support::*;

fn named<T: serde::de::DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::from)
}

async fn pipeline(thing: &Thing, cluster: &Cluster) -> Result<DesiredState> {
    let name = thing.metadata.name.clone().unwrap_or_default();
    let mut desired = DesiredState::new();
    for step in ["one", "two", "three"] {
        let name = format!("{name}-{step}");
        desired = desired.with(&named::<Job>(json!({"metadata": {"name": name}}))?);
        let job = cluster.get::<Job>(&name).await?;
        let conditions = job.and_then(|j| j.status).and_then(|s| s.conditions).unwrap_or_default();
        if conditions.iter().any(|c| c.type_ == "Failed" && c.status == "True") {
            return Ok(desired.status(ThingStatus { message: format!("{name} failed") }));
        }
        if !conditions.iter().any(|c| c.type_ == "Complete" && c.status == "True") {
            return Ok(desired.status(ThingStatus { message: format!("waiting for {name}") }));
        }
    }
    Ok(desired.status(ThingStatus { message: "all jobs have completed".into() }))
}

#[tokio::test]
async fn three_jobs_one_after_the_other() {
    let target = target();
    let runtime = runtime(&target, reconciler(pipeline), ReconcilerOptions::default()).await;
    target.put(thing("p", 0)).unwrap();
    let jobs = || target.names(&"Job.batch".parse().unwrap());
    let p = reference("Thing.example.com", "p");
    let message = || target.peek(&p).unwrap()["status"]["message"].as_str().unwrap_or_default().to_owned();

    eventually("the first job", jobs, |j| *j == ["p-one"]).await;
    settle().await;
    assert_eq!(jobs(), ["p-one"], "the second job waits");
    assert_eq!(message(), "waiting for p-one");
    assert_eq!(ready(&target, &p).1, "InProgress");

    complete(&target, "p-one");
    eventually("the second job", jobs, |j| *j == ["p-one", "p-two"]).await;
    complete(&target, "p-two");
    eventually("the third job", jobs, |j| j.len() == 3).await;
    complete(&target, "p-three");
    eventually("the end", message, |m| m == "all jobs have completed").await;
    eventually("readiness", || ready(&target, &p), |r| r.0 == "True").await;

    let writes = target.writes();
    settle().await;
    assert_eq!(target.writes(), writes, "at rest nothing is written");
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_failed_job_stops_the_pipeline_and_says_so() {
    let target = target();
    let _runtime = runtime(&target, reconciler(pipeline), ReconcilerOptions::default()).await;
    target.put(thing("p", 0)).unwrap();
    let jobs = || target.names(&"Job.batch".parse().unwrap());
    eventually("the first job", jobs, |j| *j == ["p-one"]).await;
    target
        .edit(&reference("Job.batch", "p-one"), |v| {
            v["status"] = json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "exit code 3"}]});
        })
        .unwrap();
    let p = reference("Thing.example.com", "p");
    let (status, reason, message) =
        eventually("the verdict", || ready(&target, &p), |r| r.1 == "Error").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Error"));
    assert_eq!(message, "default/Job.batch:p-one: job has failed: BackoffLimitExceeded: exit code 3");
    settle().await;
    assert_eq!(jobs(), ["p-one"]);
}

async fn app(thing: &Thing, cluster: &Cluster) -> Result<DesiredState> {
    let name = thing.metadata.name.clone().unwrap_or_default();
    let claim = named::<ConfigMap>(json!({"metadata": {"name": format!("{name}-claim")}}))?;
    let desired = DesiredState::new().with(&claim);
    let secret = format!("{name}-connection");
    let Some(found) = cluster.get::<Secret>(&secret).await? else {
        return Ok(desired.waiting_for(format!("Secret {secret}")));
    };
    let version = found.metadata.resource_version.unwrap_or_default();
    let deployment =
        named::<Deployment>(json!({"metadata": {"name": name, "annotations": {"secret": version}},
        "spec": {"selector": {}, "template": {}}}))?;
    Ok(desired.with(&deployment))
}

#[tokio::test]
async fn an_app_waits_for_a_secret_that_somebody_else_creates() {
    let target = target();
    let _runtime = runtime(&target, reconciler(app), ReconcilerOptions::default()).await;
    target.put(thing("a", 0)).unwrap();
    let a = reference("Thing.example.com", "a");
    let state = eventually("waiting", || ready(&target, &a), |r| r.1 == "InProgress").await;
    assert_eq!(state.2, "waiting for: Secret a-connection");
    let deployments = || target.names(&"Deployment.apps".parse().unwrap());
    settle().await;
    assert!(deployments().is_empty());

    let secret = |password: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a-connection", "namespace": "default"}, "data": {"p": password}});
    target.put(secret("b25l")).unwrap();
    eventually("the deployment", deployments, |d| *d == ["a"]).await;
    let state = eventually("not ready yet", || ready(&target, &a), |r| r.2.contains("Deployment")).await;
    assert_eq!(state.0, "False", "{state:?}");
    target
        .edit(&reference("Deployment.apps", "a"), |v| {
            v["status"] = json!({"observedGeneration": 1, "replicas": 1, "availableReplicas": 1, "readyReplicas": 1,
                "updatedReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]});
        })
        .unwrap();
    eventually("readiness", || ready(&target, &a), |r| r.0 == "True").await;

    // The Secret is not owned, and a change of it is seen all the same.
    let before =
        target.peek(&reference("Deployment.apps", "a")).unwrap()["metadata"]["annotations"]["secret"].clone();
    target.put(secret("dHdv")).unwrap();
    let annotation = || {
        target.peek(&reference("Deployment.apps", "a")).unwrap()["metadata"]["annotations"]["secret"].clone()
    };
    eventually("the new secret", annotation, |v| *v != before).await;
}

#[tokio::test]
async fn a_reconcilers_own_ready_condition_has_the_last_word() {
    async fn own(_: &Thing, _: &Cluster) -> Result<DesiredState> {
        Ok(DesiredState::new().condition(Condition::ready(false, "Mine", "not today")))
    }
    let target = target();
    let _runtime = runtime(&target, reconciler(own), ReconcilerOptions::default()).await;
    target.put(thing("t", 0)).unwrap();
    let t = reference("Thing.example.com", "t");
    let state = eventually("a condition", || ready(&target, &t), |r| !r.1.is_empty()).await;
    assert_eq!(state, ("False".into(), "Mine".into(), "not today".into()));
}
