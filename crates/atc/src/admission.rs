//! What Airways and their resources are checked for before they are stored.

use std::time::Duration;

use async_trait::async_trait;
use horchestra_api::{Airway, YOKE_GROUP};
use horchestra_core::{DynReconciler, Extent, GroupVersionKind, Object, ReleaseId};
use horchestra_runtime::{Admission, ApplyOptions, Denied, Operation, Review, Runtime};
use serde_json::Value;

use crate::registration::{MANAGER, Registration, Registrations};
use crate::template::definition;

/// How long a client waits for a module to be compiled, or for a trial evaluation.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reviews Airways (their template and module) and resources of flights (by a trial).
#[derive(Debug)]
pub struct FlightAdmission {
    runtime: Runtime,
    registrations: Registrations,
    /// Users whose writes are not reviewed: this program's own.
    trusted: String,
}

impl FlightAdmission {
    pub(crate) fn new(runtime: Runtime, registrations: Registrations, trusted: String) -> Self {
        Self { runtime, registrations, trusted }
    }

    async fn airway(&self, new: &Value) -> Result<(), String> {
        let airway: Airway =
            serde_json::from_value(new.clone()).map_err(|e| format!("invalid airway: {e}"))?;
        definition(&airway).map_err(|e| e.to_string())?;
        let urls = airway.spec.wasm_urls;
        let (modules, url) = (self.registrations.modules().clone(), urls.flight.clone());
        let load =
            tokio::task::spawn_blocking(move || modules.load(&urls.flight, urls.flight_checksum.as_deref()));
        let failed = |e: String| format!("failed to validate flight url {url:?}: {e}");
        match tokio::time::timeout(PATIENCE, load).await {
            Err(_) => Err(failed(format!("still compiling after {PATIENCE:?}; apply the Airway again"))),
            Ok(Err(e)) => Err(failed(e.to_string())),
            // A wrong checksum of a module that is there is found when it is used, as in Yoke.
            Ok(Ok(Err(crate::AtcError::Checksum { .. }))) | Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(e))) => Err(failed(e.to_string())),
        }
    }

    /// Evaluates the flight and applies everything it wants as a trial; all refusals together.
    async fn instance(&self, flight: &Registration, new: &Value) -> Result<(), Vec<String>> {
        if let Some(problem) = &flight.problem {
            return Err(vec![problem.clone()]);
        }
        let one = |e: horchestra_core::Error| vec![e.to_string()];
        let object = Object::from_value(new).map_err(one)?;
        let release = ReleaseId::of_instance(&object.reference());
        let cluster = self.runtime.cluster(&release.namespace);
        let desired = flight
            .reconciler
            .reconcile_object(&object, &cluster)
            .await
            .and_then(|d| d.checked())
            .map_err(one)?;
        if desired.extent() != Extent::Exactly {
            return Ok(());
        }
        let target = self.runtime.target();
        let mut problems = Vec::new();
        let mut strangers = Vec::new();
        let apply = ApplyOptions { dry_run: true, ..ApplyOptions::force(MANAGER) };
        // Later stages may need what earlier ones make; only the first can be tried.
        let first = desired.stages().first().into_iter().flatten();
        for manifest in desired.resources() {
            if !flight.plan.cross_namespace
                && !manifest.namespace().is_empty()
                && *manifest.namespace() != *release.namespace
            {
                strangers.push(format!(
                    "{}: namespace {:?} does not match target namespace {:?}",
                    manifest.reference(),
                    manifest.namespace(),
                    &*release.namespace
                ));
            }
        }
        if !strangers.is_empty() {
            return Err(vec![format!(
                "Multiple namespaces detected (if desired enable multinamespace releases): {}",
                strangers.join("; ")
            )]);
        }
        for manifest in first {
            let kind = match target.resolve(&manifest.gvk()).await {
                Ok(Some(kind)) => kind,
                Ok(None) => {
                    problems.push(format!(
                        "{}: no matches for kind {}",
                        manifest.reference(),
                        manifest.gvk()
                    ));
                    continue;
                }
                Err(e) => return Err(vec![e.to_string()]),
            };
            let mut manifest = manifest.clone();
            if !kind.namespaced {
                manifest.set_namespace("");
            } else if manifest.namespace().is_empty() {
                manifest.set_namespace(&release.namespace);
            }
            if let Err(e) = target.apply(&kind, &manifest, &apply).await {
                problems.push(format!("{}: {e}", manifest.reference()));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

fn denied(webhook: &str, code: u16, reason: &str, message: &str) -> Denied {
    let message = format!("admission webhook {webhook:?} denied the request: {message}");
    Denied { code, reason: reason.to_owned(), message }
}

#[async_trait]
impl Admission for FlightAdmission {
    fn concerns(&self, kind: &GroupVersionKind) -> bool {
        kind.group_kind().is(YOKE_GROUP, "Airway") || self.registrations.flight(&kind.group_kind()).is_some()
    }

    async fn review(&self, review: &Review) -> Result<Vec<String>, Denied> {
        let (Some(new), true) = (&review.new, review.operation != Operation::Delete) else {
            return Ok(Vec::new());
        };
        let deleting = new.pointer("/metadata/deletionTimestamp").is_some();
        if deleting || review.user == self.trusted {
            return Ok(Vec::new());
        }
        let kind = review.kind.group_kind();
        if kind.is(YOKE_GROUP, "Airway") {
            return match self.airway(new).await {
                Ok(()) => Ok(Vec::new()),
                Err(message) => Err(denied("airways.yoke.cd", 403, "Forbidden", &message)),
            };
        }
        let Some(flight) = self.registrations.flight(&kind) else { return Ok(Vec::new()) };
        if flight.skip_admission {
            return Ok(Vec::new());
        }
        let webhook = format!("{}.{}", flight.reconciler.kind.plural, kind.group);
        let trial = tokio::time::timeout(PATIENCE, self.instance(&flight, new));
        match trial.await {
            Ok(Ok(())) => Ok(Vec::new()),
            Ok(Err(problems)) => {
                let message = format!(
                    "applying resource returned errors during dry-run. Either the inputs are invalid or the package \
                     implementation has errors: {}",
                    problems.join("; ")
                );
                Err(denied(&webhook, 422, "Invalid", &message))
            }
            Err(_) => Err(denied(
                &webhook,
                403,
                "Forbidden",
                &format!("the trial evaluation took longer than {PATIENCE:?}"),
            )),
        }
    }
}
