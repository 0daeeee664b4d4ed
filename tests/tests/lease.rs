//! Leader election on a running API server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use horchestra::kube::{KubeTarget, LeaseOptions, Timing, connect_with};
use horchestra_tests::{Server, wait_for};

async fn connect(server: &Server) -> KubeTarget {
    connect_with(&server.kubeconfig(), None).await.unwrap()
}

fn start(dir: &tempfile::TempDir, arguments: &[&str]) -> Server {
    Server::start(&dir.path().join("data"), &[&["--no-node"], arguments].concat())
}

fn options(identity: &str) -> LeaseOptions {
    let timing = Timing::new(Duration::from_secs(6), Duration::from_secs(4), Duration::from_millis(500));
    LeaseOptions { timing: timing.unwrap(), ..LeaseOptions::new("default", "leader", identity) }
}

const HOLDER: [&str; 5] =
    ["get", "lease", "leader", "-o", "jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}"];

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_and_the_next_takes_over_when_it_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &["--store", "memory"]);
    let first = connect(&server).await.lead(options("first")).await.unwrap();
    assert!(first.is_held());
    let target = connect(&server).await;
    let second = tokio::spawn(async move { target.lead(options("second")).await.unwrap() });
    // Longer than the lease: it is renewed.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(first.is_held() && !second.is_finished());
    tokio::task::block_in_place(|| server.expect(&HOLDER, "first 0"));

    first.release().await;
    let second = tokio::time::timeout(Duration::from_secs(20), second).await.unwrap().unwrap();
    assert!(second.is_held());
    tokio::task::block_in_place(|| server.expect(&HOLDER, "second 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_renew_stops_before_anybody_else_begins() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &[]);
    let address = server.url().strip_prefix("https://").unwrap().to_owned();
    let leader = connect(&server).await.lead(options("first")).await.unwrap();
    server.kill();
    tokio::time::timeout(Duration::from_secs(20), leader.lost()).await.unwrap();
    assert!(!leader.is_held());

    let server = tokio::task::block_in_place(|| start(&dir, &["--listen", &address]));
    let second = connect(&server).await.lead(options("second")).await.unwrap();
    assert!(second.is_held());
    tokio::task::block_in_place(|| server.expect(&HOLDER, "second 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_somebody_takes_by_force_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &["--store", "memory"]);
    let leader = connect(&server).await.lead(options("first")).await.unwrap();
    tokio::task::block_in_place(|| {
        wait_for("a write between two renewals", || {
            let patch = r#"{"spec":{"holderIdentity":"stranger"}}"#;
            server.ask(&["patch", "lease", "leader", "--type=merge", "-p", patch])
        });
    });
    tokio::time::timeout(Duration::from_secs(20), leader.lost()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &["--store", "memory"]);
    let mut bad = options("first");
    bad.name = "not a name".into();
    let error = connect(&server).await.lead(bad).await.unwrap_err().to_string();
    assert!(error.contains("not a name"), "{error}");
}
