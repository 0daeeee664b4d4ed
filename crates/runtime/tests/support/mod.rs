//! What the tests of the runtime share.
#![allow(dead_code, unreachable_pub, reason = "each test binary has it as a module and uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use horchestra_core::k8s_openapi::api::apps::v1::Deployment;
use horchestra_core::k8s_openapi::api::batch::v1::Job;
use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use horchestra_core::{DynReconciler, GroupKind, ObjectRef};
use horchestra_runtime::testing::MemoryTarget;
use horchestra_runtime::{ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Thing", namespaced, status = "ThingStatus")]
#[kube(crates(kube_core = "horchestra_core::kube_core", k8s_openapi = "horchestra_core::k8s_openapi"))]
#[serde(default)]
pub struct ThingSpec {
    pub size: i32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThingStatus {
    pub message: String,
}

pub fn target() -> MemoryTarget {
    let target = MemoryTarget::new();
    target.serve_type::<Thing>();
    target.serve_type::<Job>();
    target.serve_type::<ConfigMap>();
    target.serve_type::<Secret>();
    target.serve_type::<Deployment>();
    target
}

pub async fn runtime(
    target: &MemoryTarget,
    reconciler: impl DynReconciler + 'static,
    options: ReconcilerOptions,
) -> Runtime {
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.add_target(TargetFor::Everything, Arc::new(target.clone()));
    runtime.register(Arc::new(reconciler), options).await;
    runtime
}

pub fn thing(name: &str, size: i32) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name, "namespace": "default"}, "spec": {"size": size}})
}

pub fn reference(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::new(kind.parse::<GroupKind>().unwrap(), "default", name)
}

/// Waits until something is so; fails with what was seen last when it takes too long.
pub async fn eventually<T: std::fmt::Debug>(
    what: &str,
    mut look: impl FnMut() -> T,
    good: impl Fn(&T) -> bool,
) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let seen = look();
        if good(&seen) {
            return seen;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what} did not happen; last seen: {seen:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What is expected not to happen gets this long to happen.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(150)).await;
}

pub fn ready(target: &MemoryTarget, object: &ObjectRef) -> (String, String, String) {
    let value = target.peek(object).unwrap_or_default();
    let conditions =
        value.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|c| c["type"] == "Ready").unwrap_or_default();
    let text = |f: &str| ready[f].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

pub fn complete(target: &MemoryTarget, job: &str) {
    target
        .edit(&reference("Job.batch", job), |v| {
            v["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})
        })
        .unwrap();
}
