//! A server in this process, again and again.
#![cfg(all(feature = "controller", feature = "flights", feature = "systemd"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use horchestra::embedded::{Embedded, EmbeddedOptions};
use horchestra::k8s_openapi::api::core::v1::ConfigMap;
use horchestra::runtime::ApplyOptions;
use horchestra::{Kind, Manifest};
use serde_json::json;

async fn start(data: &std::path::Path) -> Embedded {
    let listen = ([127, 0, 0, 1], 0).into();
    let supervisor = horchestra::systemd::SupervisorChoice::Processes;
    Embedded::start(EmbeddedOptions { listen, supervisor, ..EmbeddedOptions::new(data) }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_can_be_started_again_in_the_same_process() {
    let dir = tempfile::tempdir().unwrap();
    let map = Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"}, "data": {"b": "c"}}));
    let server = start(dir.path()).await;
    let target = server.runtime().target();
    target.apply(&Kind::of::<ConfigMap>(), &map.unwrap(), &ApplyOptions::force("test")).await.unwrap();
    server.shutdown().await;
    assert!(target.get(&Kind::of::<ConfigMap>(), "default", "a").await.is_err(), "it has ended");

    // Also one that was only dropped lets go of its store, as soon as its tasks have ended.
    drop(start(dir.path()).await);
    let mut attempt = 0;
    let server = loop {
        let listen = ([127, 0, 0, 1], 0).into();
        let supervisor = horchestra::systemd::SupervisorChoice::Processes;
        match Embedded::start(EmbeddedOptions { listen, supervisor, ..EmbeddedOptions::new(dir.path()) })
            .await
        {
            Ok(server) => break server,
            Err(error) => {
                attempt += 1;
                assert!(attempt < 200, "{error}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    };
    let found = server.runtime().target().get(&Kind::of::<ConfigMap>(), "default", "a").await.unwrap();
    assert!(found.is_some());
    server.shutdown().await;
}
