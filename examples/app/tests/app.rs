//! The app and its provider, natively and as a module: one test for both.

use example_app::{App, AppSpec, Database, app, provider};
use horchestra_flight::testing::{Evaluation, FakeCluster};
use horchestra_flight::{Error, documents};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube_core::CustomResourceExt;
use serde_json::json;

#[path = "../../airway.rs"]
mod airway;
#[path = "../../module.rs"]
mod module;

fn resource() -> App {
    App::new("shop", AppSpec { image: "busybox".into(), command: None, replicas: 2 })
}

/// Two reconcilers, of apps and of databases.
struct Calls<'a> {
    app: &'a dyn Fn(&FakeCluster, &App) -> Result<Evaluation, Error>,
    provider: &'a dyn Fn(&FakeCluster, &Database) -> Result<Evaluation, Error>,
}

/// Runs the same test on the functions and on the module.
fn both(test: impl Fn(Calls<'_>)) {
    test(Calls {
        app: &|cluster, resource| cluster.run_blocking(app, resource),
        provider: &|cluster, resource| cluster.run_blocking(provider, resource),
    });
    let module = module::module("app.wasm");
    test(Calls {
        app: &|cluster, resource| cluster.run_module(&*module, resource),
        provider: &|cluster, resource| cluster.run_module(&*module, resource),
    });
}

fn cluster() -> FakeCluster {
    FakeCluster::new().serving::<Database>()
}

#[test]
fn it_waits_for_the_secret_of_somebody_else() {
    both(|calls| {
        let mut cluster = cluster();
        let answer = (calls.app)(&cluster, &resource()).unwrap();
        answer.assert_wants_exactly(&["Database.examples.com shop"]);
        answer.assert_message("waiting for Secret shop-connection");
        answer.assert_waits_for("Secret shop-connection");
        answer.assert_reads::<Secret>("shop-connection");
        cluster.takeoff(&answer).unwrap();

        // The other reconciler, with a release of its own.
        let database: Database = cluster.get("shop").unwrap();
        let provided = (calls.provider)(&cluster, &database).unwrap();
        provided.assert_wants_exactly(&["Secret shop-connection"]);
        assert!(!provided.to_yaml().contains("uid-of-shop"), "the password is in a snapshot");
        cluster.takeoff(&provided).unwrap();

        let answer = (calls.app)(&cluster, &resource()).unwrap();
        answer.assert_wants_exactly(&["Database.examples.com shop", "Deployment.apps shop"]);
        answer.assert_message("deploying");
        let pod = answer.assert_wants::<Deployment>("shop").spec.unwrap().template.spec.unwrap();
        assert_eq!(
            pod.volumes.unwrap()[0].secret.as_ref().unwrap().secret_name.as_deref(),
            Some("shop-connection")
        );
        cluster.takeoff(&answer).unwrap();
        (calls.app)(&cluster, &resource()).unwrap().assert_message("deploying");

        cluster.set_status::<Deployment>(
            "shop",
            json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2,
                "conditions": [{"type": "Available", "status": "True"}]}),
        );
        let answer = (calls.app)(&cluster, &resource()).unwrap();
        answer.assert_message("deployed and ready");
        assert!(answer.waiting().is_empty());
        // And it keeps what it has: nothing of the other release, nothing to do.
        assert!(cluster.plan(&answer).unwrap().is_empty());
    });
}

#[test]
fn without_its_secret_it_is_taken_down_again() {
    both(|calls| {
        let mut cluster = cluster();
        cluster.takeoff(&(calls.app)(&cluster, &resource()).unwrap()).unwrap();
        let database: Database = cluster.get("shop").unwrap();
        cluster.takeoff(&(calls.provider)(&cluster, &database).unwrap()).unwrap();
        cluster.takeoff(&(calls.app)(&cluster, &resource()).unwrap()).unwrap();
        assert!(cluster.get::<Deployment>("shop").is_some());
        cluster.remove::<Secret>("shop-connection");
        cluster.takeoff(&(calls.app)(&cluster, &resource()).unwrap()).unwrap();
        assert!(cluster.get::<Deployment>("shop").is_none());
        assert!(cluster.get::<Database>("shop").is_some());
    });
}

#[test]
fn the_manifests_fit_the_types() {
    let module = "target/flights/app.wasm";
    let expected =
        [airway::airway(&App::crd(), module, &["Secret"]), airway::airway(&Database::crd(), module, &[])];
    assert_eq!(documents("airway.yaml", include_bytes!("../airway.yaml")).unwrap(), expected);
    let text = airway::manifest("cargo run", &expected);
    assert_eq!(documents("text", text.as_bytes()).unwrap(), expected);
    let instance = documents("instance.yaml", include_bytes!("../instance.yaml")).unwrap().remove(0);
    let parsed: App = serde_json::from_value(instance.clone()).unwrap();
    assert_eq!(serde_json::to_value(parsed).unwrap(), instance);
}
