//! One run: from a resource to what should exist, to a plan, to writes, to a status.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use horchestra_core::owner::ANNOTATION_KINDS;
use horchestra_core::plan::{Plan, World, plan, plan_teardown};
use horchestra_core::{
    Cluster, DesiredState, Error, GroupVersionKind, Kind, Manifest, Object, ObjectRef, Ownership, Read,
    ReadSet, Seen, Source,
};
use serde_json::json;
use tracing::Instrument;

use crate::cache::Key;
use crate::controller::{Controller, Settled};
use crate::execute::{digest_of, execute};
use crate::informer::Informer;
use crate::inner::Inner;
use crate::interest::Subscriber;
use crate::journal::Recorder;
use crate::metrics::RunResult;
use crate::source::{CacheSource, time_left};
use crate::status::{self, Verdict};
use crate::{ApplyOptions, Cause, Scope, Target};

/// How often a run makes a new plan after writing. Stages that are ready at once follow each other
/// in one run; one that has more of them goes on in the next.
const ROUNDS: usize = 16;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is no such resource.
    Gone,
    /// Everything that could be done is done.
    Done { wake: Option<Duration> },
    /// It failed.
    Failed { retry: bool, result: RunResult },
}

/// Runs a resource once.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    controller: &Arc<Controller>,
    key: &Key,
    causes: &[Cause],
    failures: u32,
) -> Ended {
    let subscriber = controller.subscriber(key);
    let span =
        tracing::info_span!("reconcile", controller = controller.name(), object = %subscriber, failures);
    let run = Run { inner, controller, key, subscriber, causes };
    run.whole().instrument(span).await
}

struct Run<'r> {
    inner: &'r Arc<Inner>,
    controller: &'r Arc<Controller>,
    key: &'r Key,
    subscriber: Subscriber,
    causes: &'r [Cause],
}

/// A failure with the kind of result that the metrics count it as.
struct Failure {
    error: Error,
    result: RunResult,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let result = if error.is_retryable() { RunResult::Retry } else { RunResult::Terminal };
        Self { error, result }
    }
}

impl Run<'_> {
    async fn whole(&self) -> Ended {
        let Some(instance) = self.controller.instance(self.key) else {
            self.inner.forget(&self.subscriber);
            self.controller.remember(self.key, None);
            return Ended::Gone;
        };
        tracing::debug!(causes = ?self.causes.iter().map(ToString::to_string).collect::<Vec<_>>(), "run");
        let outcome = if instance.is_deleting() {
            self.teardown(&instance).await
        } else {
            self.forward(&instance).await
        };
        match outcome {
            Ok(ended) => ended,
            Err(failure) => {
                tracing::info!(error = %failure.error, "run failed");
                let retry = failure.error.is_retryable();
                let verdict = Verdict::Error(failure.error.to_string());
                let result = failure.result;
                if let Err(error) = status::write(self.inner, self.controller, self.key, None, &verdict).await
                {
                    tracing::info!(%error, "the status could not be written");
                    return Ended::Failed { retry: true, result };
                }
                Ended::Failed { retry, result }
            }
        }
    }

    async fn forward(&self, instance: &Object) -> Result<Ended, Failure> {
        let (desired, reads) = self.evaluate(instance).await?;
        let (plan, wake) = self.converge(instance, &desired, &reads).await?;
        let verdict = Verdict::of(&plan, &desired);
        status::write(self.inner, self.controller, self.key, Some(&desired), &verdict).await?;
        let rounds_left = plan.is_empty();
        Ok(if rounds_left { Ended::Done { wake } } else { Ended::Done { wake: Some(Duration::ZERO) } })
    }

    /// Calls the reconciler, with its time bounded and its panics contained.
    async fn evaluate(&self, instance: &Object) -> Result<(DesiredState, ReadSet), Failure> {
        let source: Arc<dyn Source> =
            Arc::new(CacheSource { inner: self.inner.clone(), reader: Some(self.subscriber.clone()) });
        let recorder = self.inner.journal.as_ref().map(|_| Arc::new(Recorder::new(source.clone())));
        let source = recorder.clone().map_or(source, |r| r);
        let namespace =
            if instance.namespace().is_empty() { "default".into() } else { instance.namespace().clone() };
        let cluster = Cluster::new(source, namespace);
        let call = AssertUnwindSafe(self.controller.reconciler().reconcile_object(instance, &cluster))
            .catch_unwind();
        let limit = self.controller.options().timeout;
        let answer = match tokio::time::timeout(limit, call).await {
            Err(_) => {
                let error = Error::transient(format!("the reconciler did not answer within {limit:?}"));
                Err(Failure { error, result: RunResult::Timeout })
            }
            Ok(Err(panic)) => {
                let error = Error::transient(format!("the reconciler panicked: {}", panic_text(&*panic)));
                Err(Failure { error, result: RunResult::Panic })
            }
            Ok(Ok(answer)) => answer.and_then(DesiredState::checked).map_err(Failure::from),
        };
        let reads = cluster.reads();
        // After a failure the reads of earlier runs are kept as well: a change of any of them may help.
        if answer.is_ok() {
            let kept: BTreeSet<Read> = reads.iter().map(|(read, _)| self.inner.normalise(read)).collect();
            self.inner.interests().retain(&self.subscriber, |r| kept.contains(r), needs);
        }
        if let (Some(journal), Some(recorder)) = (&self.inner.journal, recorder) {
            let outcome = answer.as_ref().map_err(|f| &f.error);
            let recipe = self.controller.reconciler().recipe();
            journal.record(
                self.controller.name(),
                recipe,
                self.causes,
                instance,
                &recorder.answers(),
                outcome,
            );
        }
        answer.map(|desired| (desired, reads))
    }

    /// Plans and writes until there is nothing more to write.
    async fn converge(
        &self,
        instance: &Object,
        desired: &DesiredState,
        reads: &ReadSet,
    ) -> Result<(Plan, Option<Duration>), Failure> {
        let options = self.controller.options();
        let ownership = Ownership::of(instance, &options.managed_by)?;
        let mut kinds = self.recorded_kinds(instance).await?;
        for manifest in desired.resources() {
            if let Some(kind) = self.inner.resolve(&manifest.gvk()).await?
                && !kinds.iter().any(|k| k.group_kind() == kind.group_kind())
            {
                kinds.push(kind);
            }
        }
        if desired.resources().next().is_some() {
            self.prepare_instance(instance, &kinds).await?;
        }
        let informers = self.children(&kinds).await?;
        let memory = self.controller.memory(self.key);
        self.controller.remember(self.key, Some(memory.clone()));
        let world = CachedWorld {
            inner: self.inner,
            informers: &informers,
            ownership: &ownership,
            settled: &memory.settled,
        };
        let mut result = Plan::default();
        for _ in 0..ROUNDS {
            result = plan(desired, &ownership, &world, &options.plan)?;
            if result.is_empty() {
                break;
            }
            execute(self.inner, self.controller, &self.subscriber, &result, &memory.settled).await?;
        }
        Ok((result, self.wake(reads)))
    }

    async fn teardown(&self, instance: &Object) -> Result<Ended, Failure> {
        let options = self.controller.options();
        let Some(finalizer) = &options.finalizer else { return Ok(Ended::Done { wake: None }) };
        if !instance.finalizers().iter().any(|f| f == finalizer) {
            return Ok(Ended::Done { wake: None });
        }
        let ownership = Ownership::of(instance, &options.managed_by)?;
        let kinds = self.recorded_kinds(instance).await?;
        let informers = self.children(&kinds).await?;
        let settled = Mutex::default();
        let world = CachedWorld {
            inner: self.inner,
            informers: &informers,
            ownership: &ownership,
            settled: &settled,
        };
        for _ in 0..ROUNDS {
            let plan = plan_teardown(&world, &options.plan);
            if !plan.is_empty() {
                execute(self.inner, self.controller, &self.subscriber, &plan, &settled).await?;
            } else if !plan.waiting.is_empty() {
                let verdict = Verdict::Terminating(plan.waiting.join(", "));
                status::write(self.inner, self.controller, self.key, None, &verdict).await?;
                return Ok(Ended::Done { wake: None });
            } else {
                let bare = self.instance_manifest(instance, json!({}))?;
                let apply = ApplyOptions::force(self.manager());
                match self.inner.target().apply(self.controller.kind(), &bare, &apply).await {
                    Ok(_) | Err(crate::TargetError::NotFound(_)) => {}
                    Err(e) => return Err(e.into_error("cannot remove the finalizer").into()),
                }
                self.inner.absorb_absence(&self.subscriber, instance.uid(), &self.subscriber);
                self.inner.forget(&self.subscriber);
                self.controller.remember(self.key, None);
                return Ok(Ended::Gone);
            }
        }
        Ok(Ended::Done { wake: Some(Duration::ZERO) })
    }

    /// The kinds that were ever created for a resource, as it says itself.
    async fn recorded_kinds(&self, instance: &Object) -> Result<Vec<Kind>, Error> {
        let mut kinds = Vec::new();
        for text in kinds_annotation(instance) {
            let Some((version, kind)) = text.rsplit_once('/') else { continue };
            if let Some(kind) = self.inner.resolve(&GroupVersionKind::from_manifest(version, kind)).await? {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }

    /// Writes finalizer and kinds onto the resource before anything is created for it.
    async fn prepare_instance(&self, instance: &Object, kinds: &[Kind]) -> Result<(), Error> {
        let options = self.controller.options();
        let recorded = kinds_annotation(instance);
        let wanted: BTreeSet<String> = recorded
            .iter()
            .cloned()
            .chain(kinds.iter().map(|k| format!("{}/{}", k.gvk.api_version(), k.gvk.kind)))
            .collect();
        let has_finalizer = options.finalizer.as_ref().is_none_or(|f| instance.finalizers().contains(f));
        if has_finalizer && wanted == recorded {
            return Ok(());
        }
        let list: Vec<String> = wanted.into_iter().collect();
        let mut meta = json!({"annotations": {ANNOTATION_KINDS: list.join(",")}});
        if let (Some(finalizer), Some(map)) = (&options.finalizer, meta.as_object_mut()) {
            map.insert("finalizers".into(), json!([finalizer]));
        }
        let manifest = self.instance_manifest(instance, meta)?;
        let apply = ApplyOptions::force(self.manager());
        let stored = self
            .inner
            .target()
            .apply(self.controller.kind(), &manifest, &apply)
            .await
            .map_err(|e| e.into_error("cannot prepare the resource for what it will own"))?;
        self.inner.metrics.wrote(self.controller.name());
        self.inner.absorb(&stored, &self.subscriber);
        Ok(())
    }

    /// The field manager for what stands on the resource itself. Another one than for what is
    /// created: a resource may be created by one release and reconciled by another of the same
    /// program, and with one manager each would take away what the other had applied.
    fn manager(&self) -> String {
        format!("{}-instance", self.controller.options().plan.manager)
    }

    fn instance_manifest(&self, instance: &Object, mut meta: serde_json::Value) -> Result<Manifest, Error> {
        if let Some(map) = meta.as_object_mut() {
            map.insert("name".into(), (**instance.name()).into());
            if !instance.namespace().is_empty() {
                map.insert("namespace".into(), (**instance.namespace()).into());
            }
        }
        Manifest::new(json!({"apiVersion": instance.api_version(), "kind": &*self.controller.kind().gvk.kind, "metadata": meta}))
            .map(|m| m.with_uid(instance.uid()))
    }

    async fn children(&self, kinds: &[Kind]) -> Result<Vec<Arc<Informer>>, Error> {
        self.controller.watch_children(self.inner, kinds).await.map_err(Error::transient)
    }

    /// When to run again although nothing changes.
    fn wake(&self, reads: &ReadSet) -> Option<Duration> {
        let deadlines = reads.iter().filter_map(|(read, seen)| match (read, seen) {
            (Read::OlderThan { created, age, .. }, Seen::Flag(false)) => time_left(created, *age).ok(),
            _ => None,
        });
        // A moment later, so that the answer has turned by then.
        let deadline = deadlines.min().map(|d| d + Duration::from_millis(1));
        [deadline, self.controller.options().drift_interval].into_iter().flatten().min()
    }
}

/// Whether a watch answers a read.
fn needs(read: &Read, informer: &Informer) -> bool {
    match read {
        Read::Get { kind, namespace, name } => {
            let namespace = if informer.kind.namespaced { namespace.clone() } else { "".into() };
            *kind == informer.kind.gvk && informer.scope.contains(&namespace, name)
        }
        Read::List { kind, namespace, .. } => {
            *kind == informer.kind.gvk
                && match namespace {
                    Some(namespace) => informer.scope.covers(&Scope::Namespace(namespace.clone())),
                    None => informer.scope.covers(&Scope::All),
                }
        }
        _ => false,
    }
}

fn kinds_annotation(instance: &Object) -> BTreeSet<String> {
    let text = instance.annotation(ANNOTATION_KINDS).unwrap_or_default();
    text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}

struct CachedWorld<'w> {
    inner: &'w Inner,
    informers: &'w [Arc<Informer>],
    ownership: &'w Ownership,
    settled: &'w Mutex<HashMap<ObjectRef, Settled>>,
}

impl World for CachedWorld<'_> {
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Kind> {
        self.inner.known(gvk)
    }

    fn live(&self, kind: &Kind, object: &ObjectRef) -> Option<Object> {
        let key = (object.namespace.clone(), object.name.clone());
        self.informers.iter().find(|i| i.kind.group_kind() == kind.group_kind())?.get(&key)
    }

    fn is_settled(&self, manifest: &Manifest, live: &Object) -> bool {
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.get(&live.reference()).is_some_and(|(digest, version)| {
            *digest == digest_of(manifest) && version == live.resource_version()
        })
    }

    fn owned(&self) -> Vec<(Kind, Object)> {
        self.inner.caches().owned(self.informers, &self.ownership.release)
    }
}
