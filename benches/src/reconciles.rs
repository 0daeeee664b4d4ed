//! Reconciles that find nothing to do: how many a second, beside kube-runtime's controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use horchestra::runtime::{ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
use horchestra::{Cluster, DesiredState, Reconciler};
use kube_runtime::controller::{Action, Config, ReconcileReason, ReconcileRequest, applier};
use kube_runtime::reflector::{self, ObjectRef};
use kube_runtime::watcher::Event;

use crate::Failure;
use crate::source::Things;
use crate::table::Table;
use crate::thing::{Thing, stored};

/// Resources.
const COUNT: usize = 20_000;
/// Rounds over all of them; the best counts, the others are for warming up and for noise.
const ROUNDS: usize = 5;

/// Wants nothing but the status that is there.
struct Idle(Arc<AtomicUsize>);

#[async_trait]
impl Reconciler for Idle {
    type Resource = Thing;

    async fn reconcile(&self, _: &Thing, _: &Cluster) -> horchestra::Result<DesiredState> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(DesiredState::new().status(serde_json::json!({"message": "everything is as it should be"})))
    }
}

async fn until(count: &AtomicUsize, target: usize) {
    while count.load(Ordering::Relaxed) < target {
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

async fn ours() -> Duration {
    let count = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::new(RuntimeOptions::default());
    runtime.add_target(TargetFor::Everything, Arc::new(Things(COUNT)));
    let options = ReconcilerOptions { concurrency: 8, ..ReconcilerOptions::default() };
    runtime.register(Arc::new(Idle(count.clone())), options).await;
    until(&count, COUNT).await;
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        runtime.stand_by().await;
        let before = count.load(Ordering::Relaxed);
        let started = Instant::now();
        runtime.activate();
        until(&count, before + COUNT).await;
        best = best.min(started.elapsed());
    }
    runtime.shutdown().await;
    best
}

async fn theirs() -> Result<Duration, Failure> {
    let (reader, mut writer) = reflector::store::<Thing>();
    writer.apply_watcher_event(&Event::Init);
    for index in 0..COUNT {
        writer.apply_watcher_event(&Event::InitApply(serde_json::from_value(stored(index))?));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let refs: Vec<ObjectRef<Thing>> = reader.state().iter().map(|t| ObjectRef::from_obj(&**t)).collect();
    let (sender, receiver) = futures::channel::mpsc::unbounded::<ReconcileRequest<Thing>>();
    let count = Arc::new(AtomicUsize::new(0));
    let work = applier(
        |thing: Arc<Thing>, count: Arc<AtomicUsize>| async move {
            // As much as ours: the answer is made.
            std::hint::black_box(
                serde_json::json!({"message": "everything is as it should be", "size": thing.spec.size}),
            );
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Action::await_change())
        },
        |_, _, _| Action::await_change(),
        count.clone(),
        reader,
        receiver.map(Ok::<_, std::io::Error>),
        Config::default().concurrency(8),
    );
    let work = tokio::spawn(work.for_each(|_| futures::future::ready(())));
    let mut best = Duration::MAX;
    for _ in 0..=ROUNDS {
        let before = count.load(Ordering::Relaxed);
        let started = Instant::now();
        for object in &refs {
            let request = ReconcileRequest::from(object.clone());
            debug_assert!(matches!(request.reason, ReconcileReason::Unknown));
            sender.unbounded_send(request)?;
        }
        until(&count, before + COUNT).await;
        best = best.min(started.elapsed());
    }
    work.abort();
    Ok(best)
}

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let ours = runtime.block_on(ours());
    let theirs = runtime.block_on(theirs())?;
    let rate = |time: Duration| COUNT as f64 / time.as_secs_f64();
    table.row(
        "reconciles with nothing to do",
        format!("{:.0}/s", rate(ours)),
        "kube-runtime's",
        format!("kube-runtime {:.0}/s, ratio {:.2}", rate(theirs), rate(ours) / rate(theirs)),
    );
    Ok(())
}
