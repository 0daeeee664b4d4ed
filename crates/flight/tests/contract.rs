//! A reconciler through the whole contract, bytes in and bytes out, is the same reconciler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use horchestra_core::Source;
use horchestra_flight::contract::{Evaluate, Fault, Invocation, NoCluster, Refusal, State};
use horchestra_flight::testing::FakeCluster;
use horchestra_flight::{
    Answer, Cluster, ClusterHost, DesiredState, Error, NativeFlight, Read, Result, async_trait, reconciler,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use serde_json::json;

/// Asks everything that can be asked, and says what it saw.
async fn curious(map: &ConfigMap, cluster: &Cluster) -> Result<DesiredState> {
    let here = cluster.get::<Secret>("here").await?;
    let status = json!({
        "here": here.is_some(),
        "gone": cluster.get::<Secret>("gone").await?.is_some(),
        "elsewhere": cluster.namespace("other").get::<Secret>("far").await?.is_some(),
        "namespace": cluster.get::<Namespace>("other").await?.is_some(),
        "web": cluster.list::<Secret>("tier=web").await?.len(),
        "all": cluster.list_all::<Secret>("").await?.len(),
        "namespaces": cluster.list_all::<Namespace>("").await?.len(),
        "old": cluster.older_than(map, Duration::from_secs(60)).await?,
        "older": cluster.older_than(map, Duration::from_millis(3_600_500)).await?,
        "plural": cluster.rest_mapping("apps", "v1", "Deployment").await?.map(|k| k.plural.to_string()),
        "unknown": cluster.rest_mapping("example.org", "v1", "Thing").await?.is_some(),
    });
    let mut deployment = Deployment::default();
    deployment.metadata.name = Some("d".into());
    Ok(DesiredState::new().with(&deployment).status(status).waiting_for("a, and b"))
}

fn resource() -> ConfigMap {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}}))
    .unwrap()
}

fn cluster() -> FakeCluster {
    FakeCluster::new().at("2026-01-01T00:10:00Z").with_yaml(
        "
        - {apiVersion: v1, kind: Secret, metadata: {name: here, labels: {tier: web}}}
        - {apiVersion: v1, kind: Secret, metadata: {name: also}}
        - {apiVersion: v1, kind: Secret, metadata: {name: far, namespace: other, labels: {tier: web}}}
        - {apiVersion: v1, kind: Namespace, metadata: {name: other}}
        ",
    )
}

#[test]
fn the_answer_and_the_reads_are_the_same_as_natively() {
    let native = cluster().run_blocking(curious, &resource()).unwrap();
    let flight = cluster().run_module(&NativeFlight(reconciler(curious)), &resource()).unwrap();
    assert_eq!(flight.desired, native.desired);
    assert_eq!(flight.reads, native.reads);
    let expected = json!({"here": true, "gone": false, "elsewhere": true, "namespace": true, "web": 1, "all": 3,
        "namespaces": 1, "old": true, "older": false, "plural": "deployments", "unknown": false});
    assert_eq!(native.status::<serde_json::Value>().unwrap(), expected);
    assert_eq!(native.reads.len(), 11);
    native.assert_lists::<Secret>();
    native.assert_reads::<Namespace>("other");
}

fn call(
    stdin: &str,
    host: Arc<dyn horchestra_flight::contract::Host>,
) -> Result<horchestra_flight::contract::Output, Fault> {
    NativeFlight(reconciler(curious)).evaluate(&Invocation::new("r", "default", stdin.into()), host)
}

const YAML: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  namespace: default\n";

#[test]
fn stdin_may_be_yaml_and_must_be_the_resource() {
    let host = || Arc::new(cluster().host("default"));
    let output = call(YAML, host()).unwrap();
    assert_eq!(
        (output.exit_code, output.stderr.len()),
        (0, 0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (stdin, part) in [
        ("", "is empty"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "this flight is for ConfigMap"),
        ("{\"apiVersion\": \"v1\"", "stdin"),
        ("kind: ConfigMap\nkind: ConfigMap\n", "stdin"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n---\nkind: Other\n", "2 documents"),
        (
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"data\":7}",
            "ConfigMap:m",
        ),
    ] {
        let output = call(stdin, host()).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.exit_code, output.stdout.len()), (1, 0), "{stdin}: {stderr}");
        assert!(stderr.contains(part), "{stdin}: {stderr}");
    }
}

#[test]
fn what_a_host_refuses_is_an_error_with_its_words() {
    let denied = call(YAML, Arc::new(NoCluster)).unwrap();
    assert_eq!(denied.exit_code, 1);
    let text = "failed to lookup secret here: access to the cluster has not been granted for this flight invocation\n";
    assert_eq!(String::from_utf8(denied.stderr).unwrap(), text);
    let guarded = cluster().host("default").guarded(|read, _| match read {
        Read::Get { name, .. } if &**name == "far" => {
            Err(Refusal::State(State::Forbidden, "forbidden: not yours".into()))
        }
        _ => Ok(()),
    });
    let host = Arc::new(guarded);
    let output = call(YAML, host.clone()).unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "failed to lookup secret far: forbidden: not yours\n"
    );
    // The forbidden one too: it is what a change would have to be watched for.
    assert_eq!(host.reads().len(), 3);
}

/// Knows nothing at first, and has every answer only once: as a watch that nobody else holds.
#[derive(Default)]
struct Slow(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Source for Slow {
    async fn read(&self, read: &Read) -> Result<Answer> {
        match (read, self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            (Read::Get { .. }, 0 | 2 | 3) => std::future::pending().await,
            (Read::Get { .. }, 1) => Ok(Answer::Object(None)),
            _ => Err(Error::Pending("Secret".into())),
        }
    }
}

#[test]
fn an_answer_that_is_not_there_yet_is_waited_for_once() {
    let cluster = Cluster::new(Arc::new(Slow::default()), "default");
    let host = Arc::new(ClusterHost::new(cluster, "default", |_| true));
    assert_eq!(call(YAML, host.clone()).unwrap_err(), Fault::Pending);
    assert!(host.reads().is_empty());
    let settled = || futures::executor::block_on(host.settle()).unwrap();
    assert!(settled());
    // The answer is kept; what is asked next is another question.
    assert_eq!(call(YAML, host.clone()).unwrap_err(), Fault::Pending);
    let read: Vec<String> = host.reads().iter().map(|(read, _)| read.to_string()).collect();
    assert_eq!(read, ["default/Secret:here"]);
}

#[test]
fn there_is_nothing_to_wait_for_before_an_evaluation() {
    let cluster = Cluster::new(Arc::new(Slow::default()), "default");
    let host = ClusterHost::new(cluster, "default", |_| true);
    assert!(!futures::executor::block_on(host.settle()).unwrap());
}

#[test]
fn a_function_that_waits_for_anything_else_is_told_so() {
    async fn sleeper(_: &ConfigMap, _: &Cluster) -> Result<DesiredState> {
        std::future::pending().await
    }
    let host = Arc::new(cluster().host("default"));
    let invocation = Invocation::new("r", "default", YAML.into());
    let output = NativeFlight(reconciler(sleeper)).evaluate(&invocation, host).unwrap();
    assert_eq!(output.exit_code, 1);
    assert!(String::from_utf8(output.stderr).unwrap().contains("only reads"));
}

#[test]
fn secrets_do_not_show() {
    async fn keeper(_: &ConfigMap, _: &Cluster) -> Result<DesiredState> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "stringData": {"password": "hunter2"}, "data": {"key": "aHVudGVyMg=="}});
        Ok(DesiredState::new().with_value(secret))
    }
    let evaluation = cluster().run_blocking(keeper, &resource()).unwrap();
    for text in
        [evaluation.to_yaml(), evaluation.to_json(), format!("{evaluation:?}"), json!(evaluation).to_string()]
    {
        assert!(
            text.contains("password") && !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
            "{text}"
        );
    }
}
