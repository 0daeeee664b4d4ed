//! From a finished Job to the next one, as a flight decides it: in this process and over the network.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use horchestra::api::Airway;
use horchestra::embedded::{Embedded, EmbeddedOptions, StoreChoice};
use horchestra::k8s_openapi::api::batch::v1::Job;
use horchestra::runtime::{ApplyOptions, Scope, Target, WatchEvent, WatchStream};
use horchestra::{GroupVersionKind, Kind, Manifest};
use serde_json::{Value, json};

use crate::table::{Samples, Table, ms};
use crate::{Failure, pipeline};

/// Pipelines that wait for their first job meanwhile.
const RESIDENT: usize = 1_000;
/// Pipelines that run to their end; each has two steps after another.
const COUNT: usize = 200;
/// Requests at once while the residents are made.
const PARALLEL: usize = 8;

/// The Airway of the example, with the module that was built.
pub fn airway() -> Result<Value, Failure> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pipeline/airway.yaml");
    let text = std::fs::read_to_string(path)?;
    let module = pipeline().canonicalize()?;
    let text = text.replace("target/flights/pipeline.wasm", &module.display().to_string());
    Ok(horchestra_flight::document("airway.yaml", text.as_bytes())?)
}

/// Waits until the flight of the Airway is registered.
pub async fn ready(target: &dyn Target) -> Result<(), Failure> {
    for _ in 0..6000 {
        let airway = target.get(&Kind::of::<Airway>(), "", "pipelines.examples.com").await?;
        let value = airway.map(|a| a.to_value()).unwrap_or_default();
        let conditions = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("the Airway did not become ready".into())
}

/// Jobs as they appear.
struct Jobs {
    stream: WatchStream,
    seen: HashMap<String, Instant>,
}

impl Jobs {
    async fn wait(&mut self, name: &str) -> Result<Instant, Failure> {
        while !self.seen.contains_key(name) {
            let event = tokio::time::timeout(Duration::from_secs(120), self.stream.next()).await;
            let event = event.map_err(|_| format!("job {name} did not appear"))?;
            if let WatchEvent::Applied(job) = event.ok_or("the watch ended")?? {
                self.seen.entry(job.name().to_string()).or_insert_with(Instant::now);
            }
        }
        Ok(self.seen[name])
    }
}

fn instance(name: &str) -> Result<Manifest, Failure> {
    Ok(Manifest::new(json!({"apiVersion": "examples.com/v1", "kind": "Pipeline",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"image": "busybox"}}))?)
}

/// Lets a Job succeed; the moment at which that is acknowledged.
async fn complete(target: &dyn Target, name: &str) -> Result<Instant, Failure> {
    let kind = Kind::of::<Job>();
    let now = "2026-01-01T00:00:00Z";
    let condition =
        |of: &str| json!({"type": of, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let status = json!({"succeeded": 1, "startTime": now, "completionTime": now,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    let job = target.get(&kind, "default", name).await?.ok_or("no such job")?;
    let status = status.as_object().cloned().unwrap_or_default();
    target.set_status(&job, &kind, status, "bench").await?;
    Ok(Instant::now())
}

struct Measured {
    residents: Duration,
    next: Samples,
}

async fn measure(target: Arc<dyn Target>) -> Result<Measured, Failure> {
    let gvk = GroupVersionKind::new("examples.com", "v1", "Pipeline");
    let pipelines = target.resolve(&gvk).await?.ok_or("Pipelines are not served")?;
    let scope = Scope::Namespace("default".into());
    let jobs = Kind::of::<Job>();
    let revision = target.list(&jobs, &scope).await?.revision;
    let mut jobs = Jobs { stream: target.watch(&jobs, &scope, &revision).await?, seen: HashMap::new() };
    let options = ApplyOptions::force("bench");

    let started = Instant::now();
    let mut made = futures::stream::iter(0..RESIDENT)
        .map(|i| {
            let (target, pipelines, options) = (target.clone(), pipelines.clone(), options.clone());
            async move {
                let manifest = instance(&format!("idle{i}"))?;
                target.apply(&pipelines, &manifest, &options).await?;
                Ok::<_, Failure>(())
            }
        })
        .buffer_unordered(PARALLEL);
    while let Some(result) = made.next().await {
        result?;
    }
    for i in 0..RESIDENT {
        jobs.wait(&format!("idle{i}-one")).await?;
    }
    let residents = started.elapsed();

    let mut next = Vec::new();
    for i in 0..COUNT {
        target.apply(&pipelines, &instance(&format!("p{i}"))?, &options).await?;
        for (step, following) in [("one", "two"), ("two", "three")] {
            jobs.wait(&format!("p{i}-{step}")).await?;
            let done = complete(&*target, &format!("p{i}-{step}")).await?;
            let appeared = jobs.wait(&format!("p{i}-{following}")).await?;
            next.push(appeared.saturating_duration_since(done));
        }
    }
    Ok(Measured { residents, next: Samples::new(next) })
}

async fn with(store: StoreChoice, network: bool) -> Result<Measured, Failure> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let options = EmbeddedOptions {
        listen: ([127, 0, 0, 1], 0).into(),
        node: false,
        store,
        ..EmbeddedOptions::new(&data)
    };
    let server = Embedded::start(options).await?;
    let target = server.runtime().target();
    let apply = ApplyOptions::force("bench");
    target.apply(&Kind::of::<Airway>(), &Manifest::new(airway()?)?, &apply).await?;
    ready(&*target).await?;
    let target: Arc<dyn Target> = if network {
        Arc::new(horchestra::kube::connect_with(server.kubeconfig(), None).await?)
    } else {
        target
    };
    let measured = measure(target).await?;
    server.shutdown().await;
    Ok(measured)
}

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut row = |what: &str, measured: &Measured, share: f64, aim: &str| {
        let (p50, p99) = (measured.next.quantile(0.5), measured.next.quantile(0.99));
        table.row(what, ms(measured.next.quantile(share)), aim, format!("p50 {}, p99 {}", ms(p50), ms(p99)));
    };
    let memory = runtime.block_on(with(StoreChoice::Memory, false))?;
    row("job done to next job, memory, p99", &memory, 0.99, "1 ms");
    let redb = runtime.block_on(with(StoreChoice::Redb, false))?;
    row("job done to next job, redb, p99", &redb, 0.99, "5 ms");
    let http = runtime.block_on(with(StoreChoice::Redb, true))?;
    row("job done to next job, over HTTP, p50", &http, 0.5, "5 ms");
    table.row(
        "1,000 pipelines get their first job, over HTTP",
        format!("{:.2} s", http.residents.as_secs_f64()),
        "5 s",
        format!("in process {:.2} s", redb.residents.as_secs_f64()),
    );
    Ok(())
}
