//! Registrations of flights: objects whose target is the runtime of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use horchestra_api::{AirwaySpec, Mode};
use horchestra_core::plan::{Adopt, PlanOptions};
use horchestra_core::{GroupKind, GroupVersionKind, Kind, Manifest, Object};
use horchestra_flight::contract::Limits;
use horchestra_runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Reaction, ReconcilerOptions, Revision, Runtime, Scope,
    Target, TargetError, WatchEvent, WatchStream,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::flight_reconciler::{Access, FlightReconciler};
use crate::module::Modules;

/// The group of registrations. It is served by this process alone.
pub const GROUP: &str = "runtime.horchestra.dev";
/// The finalizer of instances.
pub const INSTANCE_FINALIZER: &str = "yoke.cd/mayday.flight";
/// The field manager of everything a flight creates.
pub const MANAGER: &str = "yoke";
/// `app.kubernetes.io/managed-by` of everything that belongs to an instance.
pub const MANAGED_BY: &str = "atc.yoke";

/// How many changes a slow watcher may be behind before it has to list again.
const BACKLOG: usize = 256;
/// What one run may take beside its evaluation: waiting for first listings.
const SLACK: Duration = Duration::from_secs(30);

/// The kind of registrations.
pub fn registration_kind() -> Kind {
    Kind {
        gvk: GroupVersionKind::new(GROUP, "v1", "FlightRegistration"),
        plural: "flightregistrations".into(),
        namespaced: false,
    }
}

/// What a registration says.
#[derive(Debug, Clone, Deserialize)]
struct Spec {
    instances: Instances,
    #[serde(flatten)]
    airway: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct Instances {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// Makes registrations so: loads their modules, and registers them with the runtime.
#[derive(Clone)]
pub struct Registrations(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    modules: Modules,
    state: Mutex<State>,
    news: broadcast::Sender<(u64, bool, Object)>,
}

#[derive(Default)]
struct State {
    revision: u64,
    objects: BTreeMap<Arc<str>, Registered>,
    flights: BTreeMap<GroupKind, Arc<Registration>>,
}

struct Registered {
    value: Value,
    object: Object,
}

/// A flight that is registered, with what its instances' admission needs to know.
#[derive(Debug)]
pub struct Registration {
    /// The flight.
    pub reconciler: Arc<FlightReconciler>,
    /// Whether its instances are admitted without a trial.
    pub skip_admission: bool,
    /// How plans of its instances are made.
    pub plan: PlanOptions,
}

impl Registrations {
    /// For a runtime, with modules from there.
    pub fn new(runtime: Runtime, modules: Modules) -> Self {
        let news = broadcast::Sender::new(BACKLOG);
        Self(Arc::new(Inner { runtime, modules, state: Mutex::default(), news }))
    }

    /// The flight that serves a kind.
    pub fn flight(&self, kind: &GroupKind) -> Option<Arc<Registration>> {
        self.state().flights.get(kind).cloned()
    }

    /// Where modules come from.
    pub fn modules(&self) -> &Modules {
        &self.0.modules
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the next state of a registration and tells the watchers.
    fn store(&self, mut value: Value, dead: bool) -> Result<Object, TargetError> {
        let mut state = self.state();
        state.revision += 1;
        let revision = state.revision;
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("resourceVersion".into(), revision.to_string().into());
        }
        let object = Object::from_value(&value).map_err(|e| TargetError::Invalid(e.to_string()))?;
        if dead {
            state.objects.remove(object.name());
        } else {
            state.objects.insert(object.name().clone(), Registered { value, object: object.clone() });
        }
        // Nobody watching is fine.
        let _ = self.0.news.send((revision, dead, object.clone()));
        Ok(object)
    }

    /// Loads the module of a registration and registers it, then says how that went.
    async fn load(self, object: Object) {
        let outcome = self.try_load(&object).await;
        let condition = match &outcome {
            Ok(()) => {
                json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "the flight is registered"})
            }
            Err(text) => json!({"type": "Ready", "status": "False", "reason": "Error", "message": text}),
        };
        let current = self.state().objects.get(object.name()).map(|r| r.value.clone());
        let Some(mut value) = current.filter(|v| generation(v) == object.generation()) else { return };
        value["status"] = json!({"conditions": [condition]});
        if let Err(error) = self.store(value, false) {
            tracing::error!(%error, "the state of a registration cannot be stored");
        }
    }

    async fn try_load(&self, object: &Object) -> Result<(), String> {
        let value = object.to_value();
        let mut spec: Spec = serde_json::from_value(value.get("spec").cloned().unwrap_or_default())
            .map_err(|e| e.to_string())?;
        // The template is not part of a registration, and is required by the type.
        if let Some(map) = spec.airway.as_object_mut() {
            map.insert("template".into(), Value::Null);
        }
        let airway: AirwaySpec = serde_json::from_value(spec.airway).map_err(|e| e.to_string())?;
        let (modules, urls) = (self.0.modules.clone(), airway.wasm_urls.clone());
        let loading =
            tokio::task::spawn_blocking(move || modules.load(&urls.flight, urls.flight_checksum.as_deref()));
        let module = loading.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;

        let kind = Kind {
            gvk: GroupVersionKind::new(spec.instances.group, spec.instances.version, spec.instances.kind),
            plural: spec.instances.plural.into(),
            namespaced: spec.instances.namespaced,
        };
        let group_kind = kind.group_kind();
        let mut limits = Limits::default();
        if let Some(timeout) = airway.timeout.filter(|t| !t.0.is_zero()) {
            limits.timeout = timeout.0;
        }
        if airway.max_memory_mib > 0 {
            limits.memory = u64::from(airway.max_memory_mib) << 20;
        }
        let reconciler = Arc::new(FlightReconciler {
            module: (module.sha256, airway.wasm_urls.flight.clone()),
            flight: module.flight,
            object_path: airway.object_path.clone(),
            limits,
            access: Access {
                granted: airway.cluster_access,
                matchers: airway.resource_access_matchers.clone(),
            },
            kind: kind.clone(),
        });
        let plan = PlanOptions {
            manager: MANAGER.into(),
            adopt: Adopt::Unowned,
            cross_namespace: !kind.namespaced,
            prune_crds: airway.prune.crds,
            prune_namespaces: airway.prune.namespaces,
        };
        let options = ReconcilerOptions {
            name: object.name().to_string(),
            managed_by: MANAGED_BY.into(),
            finalizer: Some(INSTANCE_FINALIZER.into()),
            plan: plan.clone(),
            ready_condition: true,
            reaction: match airway.mode {
                Mode::Standard | Mode::Static => Reaction::Standard,
                Mode::Dynamic => Reaction::Dynamic,
                Mode::Subscription => Reaction::Subscription,
            },
            drift_interval: airway.fix_drift_interval.map(|d| d.0).filter(|d| !d.is_zero()),
            timeout: limits.timeout.saturating_add(SLACK),
            ..ReconcilerOptions::default()
        };
        let registration = Registration {
            reconciler: reconciler.clone(),
            skip_admission: airway.skip_admission_webhook,
            plan,
        };
        self.state().flights.insert(group_kind, Arc::new(registration));
        self.0.runtime.register(reconciler, options).await;
        Ok(())
    }
}

fn generation(value: &Value) -> i64 {
    value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
}

impl std::fmt::Debug for Registrations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registrations({:?})", self.state().flights.keys())
    }
}

#[async_trait]
impl Target for Registrations {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        let served = registration_kind();
        Ok((kind.group_kind() == served.group_kind()).then_some(served))
    }

    async fn get(&self, _: &Kind, _: &str, name: &str) -> Result<Option<Object>, TargetError> {
        Ok(self.state().objects.get(name).map(|r| r.object.clone()))
    }

    async fn list(&self, _: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
        let state = self.state();
        let objects = state
            .objects
            .values()
            .map(|r| r.object.clone())
            .filter(|o| scope.contains("", o.name()))
            .collect();
        Ok(Listing { objects, revision: Revision(state.revision.to_string()) })
    }

    async fn watch(&self, _: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        let state = self.state();
        if from.0 != state.revision.to_string() {
            return Err(TargetError::Gone(from.0.clone()));
        }
        // Subscribed under the lock: nothing can happen in between.
        let news = self.0.news.subscribe();
        drop(state);
        let scope = scope.clone();
        Ok(stream::unfold(news, move |mut news| {
            let scope = scope.clone();
            async move {
                let item = match news.recv().await {
                    Ok((_, true, object)) if scope.contains("", object.name()) => {
                        Ok(WatchEvent::Deleted(object))
                    }
                    Ok((_, false, object)) if scope.contains("", object.name()) => {
                        Ok(WatchEvent::Applied(object))
                    }
                    Ok((revision, ..)) => Ok(WatchEvent::Bookmark(Revision(revision.to_string()))),
                    Err(broadcast::error::RecvError::Lagged(n)) => {
                        Err(TargetError::Gone(format!("{n} changes behind")))
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                };
                Some((item, news))
            }
        })
        .boxed())
    }

    async fn apply(
        &self,
        _: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError> {
        let mut value = manifest.value().clone();
        let old = self.state().objects.get(manifest.name()).map(|r| (r.value.clone(), r.object.clone()));
        let unchanged =
            |old: &Value| ["spec", "apiVersion", "kind"].iter().all(|f| old.get(f) == value.get(f));
        let same_marks = |old: &Value| {
            ["labels", "annotations", "ownerReferences"].iter().all(|f| {
                old.get("metadata").and_then(|m| m.get(f)) == value.get("metadata").and_then(|m| m.get(f))
            })
        };
        if let Some((old, object)) = &old
            && unchanged(old)
            && same_marks(old)
        {
            return Ok(object.clone());
        }
        let uid = match &old {
            Some((_, object)) => object.uid().to_owned(),
            None => format!("{}-{}", manifest.name(), self.state().revision + 1),
        };
        let next = old.as_ref().map_or(1, |(v, _)| generation(v) + 1);
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".into(), uid.into());
            meta.insert("generation".into(), next.into());
        }
        value["status"] = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "InProgress", "message": "loading the module"}
        ]});
        if options.dry_run {
            return Object::from_value(&value).map_err(|e| TargetError::Invalid(e.to_string()));
        }
        let stored = self.store(value, false)?;
        tokio::spawn(self.clone().load(stored.clone()));
        Ok(stored)
    }

    async fn set_status(
        &self,
        seen: &Object,
        _: &Kind,
        _: Map<String, Value>,
        _: &str,
    ) -> Result<Object, TargetError> {
        Err(TargetError::Invalid(format!(
            "{}: the status of a registration is the runtime's",
            seen.reference()
        )))
    }

    async fn delete(
        &self,
        _: &Kind,
        _: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError> {
        let Some((value, object)) =
            self.state().objects.get(name).map(|r| (r.value.clone(), r.object.clone()))
        else {
            return Ok(());
        };
        if options.uid.as_deref().is_some_and(|uid| uid != object.uid()) {
            return Err(TargetError::Conflict(format!("{} is another one now", object.reference())));
        }
        if options.dry_run {
            return Ok(());
        }
        let instances = value.pointer("/spec/instances");
        let text = |f: &str| instances.and_then(|i| i.get(f)).and_then(Value::as_str).unwrap_or_default();
        let kind = GroupKind::new(text("group"), text("kind"));
        self.state().flights.remove(&kind);
        self.0.runtime.unregister(&kind).await;
        self.store(value, true).map(drop)
    }

    async fn note(&self, _: &Object, _: Note) -> Result<(), TargetError> {
        Ok(())
    }
}
