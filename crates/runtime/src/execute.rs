//! Makes a plan so.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::stream::{self, StreamExt};
use horchestra_core::plan::{Action, Plan, Verb, differences};
use horchestra_core::{Error, Manifest, ObjectRef};

use crate::controller::{Controller, Settled};
use crate::inner::Inner;
use crate::interest::Subscriber;
use crate::{ApplyOptions, DeleteOptions, Propagation, Target, TargetError};

/// How many writes of one stage are under way at once.
const PARALLEL: usize = 16;

/// Executes the writes of a plan: stage by stage, those of a stage side by side. Stops after the
/// first stage in which something failed, with all its errors in one.
pub(crate) async fn execute(
    inner: &Inner,
    controller: &Controller,
    writer: &Subscriber,
    plan: &Plan,
    settled: &Mutex<HashMap<ObjectRef, Settled>>,
) -> Result<(), Error> {
    let mut rest: Vec<&Action> = plan.writes().collect();
    while let Some(first) = rest.first() {
        let removes = |a: &Action| matches!(a.verb, Verb::Delete { .. } | Verb::Orphan { .. });
        let (stage, removing) = (first.stage, removes(first));
        let (now, later): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|a| a.stage == stage && removes(a) == removing);
        rest = later;
        let acts: Vec<_> =
            now.into_iter().map(|a| act(inner, controller, writer, a, settled).boxed()).collect();
        let results: Vec<Result<(), Error>> = stream::iter(acts).buffer_unordered(PARALLEL).collect().await;
        let errors: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
        if let Some(error) = combine(errors) {
            return Err(error);
        }
    }
    Ok(())
}

async fn act(
    inner: &Inner,
    controller: &Controller,
    writer: &Subscriber,
    action: &Action,
    settled: &Mutex<HashMap<ObjectRef, Settled>>,
) -> Result<(), Error> {
    let manager = &*controller.options().plan.manager;
    let object = &action.object;
    let failed = |e: TargetError| e.into_error(format!("cannot write {object}"));
    match &action.verb {
        Verb::Keep => return Ok(()),
        Verb::Create { manifest } | Verb::Patch { manifest, .. } | Verb::Orphan { manifest, .. } => {
            tracing::info!(action = %action, "write");
            let stored = inner
                .target()
                .apply(&action.kind, manifest, &ApplyOptions::force(manager))
                .await
                .map_err(failed)?;
            // What is left of the difference is the server's way of writing it down.
            let mut settled = settled.lock().unwrap_or_else(PoisonError::into_inner);
            if differences(&stored.to_value(), manifest.value(), manager).is_empty() {
                settled.remove(object);
            } else {
                settled.insert(object.clone(), (digest_of(manifest), stored.resource_version().to_owned()));
            }
            drop(settled);
            inner.absorb(&stored, writer);
        }
        Verb::Delete { uid } => {
            tracing::info!(action = %action, "delete");
            let options = DeleteOptions {
                uid: Some(uid.clone()),
                propagation: Propagation::Background,
                ..DeleteOptions::default()
            };
            match inner.target().delete(&action.kind, &object.namespace, &object.name, &options).await {
                // Another incarnation stands there now: not ours to delete.
                Ok(()) | Err(TargetError::NotFound(_) | TargetError::Conflict(_)) => {}
                Err(e) => return Err(failed(e)),
            }
            match inner.target().get(&action.kind, &object.namespace, &object.name).await.map_err(failed)? {
                Some(left) if left.uid() == uid => inner.absorb(&left, writer),
                _ => inner.absorb_absence(object, uid, writer),
            }
        }
    }
    inner.metrics.wrote(controller.name());
    Ok(())
}

/// One error of many: it is retried if any of them may pass.
fn combine(errors: Vec<Error>) -> Option<Error> {
    let mut errors = errors.into_iter();
    let first = errors.next()?;
    let rest: Vec<Error> = errors.collect();
    if rest.is_empty() {
        return Some(first);
    }
    let retry = first.is_retryable() || rest.iter().any(Error::is_retryable);
    let text = std::iter::once(first).chain(rest).map(|e| e.to_string()).collect::<Vec<_>>().join("; ");
    Some(if retry { Error::Transient(text) } else { Error::Terminal(text) })
}

/// Tells manifests apart.
pub(crate) fn digest_of(manifest: &Manifest) -> u64 {
    let mut hasher = DefaultHasher::new();
    manifest.value().to_string().hash(&mut hasher);
    hasher.finish()
}
