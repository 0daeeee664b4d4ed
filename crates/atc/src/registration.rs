//! Registrations of flights: objects whose target is the runtime of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use horchestra_api::{AirwaySpec, Mode};
use horchestra_core::plan::{Adopt, PlanOptions};
use horchestra_core::{GroupKind, GroupVersionKind, Kind, Manifest, Object};
use horchestra_flight::contract::Limits;
use horchestra_runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Reaction, ReconcilerOptions, Revision, Runtime, Scope, Table,
    Target, TargetError, WatchStream,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

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
    table: Table,
    flights: Mutex<BTreeMap<GroupKind, Arc<Registration>>>,
}

/// A flight that is registered, with what its instances' admission needs to know.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The flight.
    pub reconciler: Arc<FlightReconciler>,
    /// Whether its instances are admitted without a trial.
    pub skip_admission: bool,
    /// How plans of its instances are made.
    pub plan: PlanOptions,
    /// Why what its Airway says now cannot be used. Instances that exist are served as before; a
    /// change of one is refused with it.
    pub problem: Option<String>,
}

impl Registrations {
    /// For a runtime, with modules from there.
    pub fn new(runtime: Runtime, modules: Modules) -> Self {
        Self(Arc::new(Inner { runtime, modules, table: Table::new(), flights: Mutex::default() }))
    }

    /// The flight that serves a kind.
    pub fn flight(&self, kind: &GroupKind) -> Option<Arc<Registration>> {
        self.flights().get(kind).cloned()
    }

    /// Where modules come from.
    pub fn modules(&self) -> &Modules {
        &self.0.modules
    }

    fn flights(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Arc<Registration>>> {
        self.0.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the module of a registration and registers it, then says how that went.
    async fn load(self, object: Object) {
        let (holds, reason, message) = match self.try_load(&object).await {
            Ok(()) => ("True", "Ready", "the flight is registered".to_owned()),
            Err(text) => {
                self.problem(&object, &text);
                ("False", "Error", text)
            }
        };
        let condition = json!({"type": "Ready", "status": holds, "reason": reason, "message": message});
        if let Err(error) = self.0.table.set_status(&object, json!({"conditions": [condition]})) {
            tracing::error!(%error, "the state of a registration cannot be stored");
        }
    }

    /// Notes why the flight of a registration cannot be replaced by what it says now.
    fn problem(&self, object: &Object, text: &str) {
        let mut flights = self.flights();
        if let Some(flight) = flights.get_mut(&served(object)) {
            *flight =
                Arc::new(Registration { problem: Some(text.to_owned()), ..Registration::clone(flight) });
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
            reaction: reaction(airway.mode),
            reaction_of: Some(own_reaction),
            drift_interval: airway.fix_drift_interval.map(|d| d.0).filter(|d| !d.is_zero()),
            timeout: limits.timeout.saturating_add(SLACK),
            ..ReconcilerOptions::default()
        };
        let registration = Registration {
            reconciler: reconciler.clone(),
            skip_admission: airway.skip_admission_webhook,
            plan,
            problem: None,
        };
        self.flights().insert(group_kind, Arc::new(registration));
        self.0.runtime.register(reconciler, options).await;
        Ok(())
    }
}

/// The kind that a registration is for.
fn served(registration: &Object) -> GroupKind {
    let value = registration.to_value();
    let instances = value.pointer("/spec/instances");
    let text = |f: &str| instances.and_then(|i| i.get(f)).and_then(Value::as_str).unwrap_or_default();
    GroupKind::new(text("group"), text("kind"))
}

/// The mode of one instance, in place of its Airway's.
const MODE_OVERRIDE: &str = "overrides.yoke.cd/mode";

fn reaction(mode: Mode) -> Reaction {
    match mode {
        Mode::Standard | Mode::Static => Reaction::Standard,
        Mode::Dynamic => Reaction::Dynamic,
        Mode::Subscription => Reaction::Subscription,
    }
}

/// The mode that an instance asks for itself; words that are no mode are ignored, as in Yoke.
fn own_reaction(instance: &Object) -> Option<Reaction> {
    let word = instance.annotation(MODE_OVERRIDE)?;
    serde_json::from_value(Value::String(word)).ok().map(reaction)
}

impl std::fmt::Debug for Registrations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registrations({:?})", self.flights().keys())
    }
}

#[async_trait]
impl Target for Registrations {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        let served = registration_kind();
        Ok((kind.group_kind() == served.group_kind()).then_some(served))
    }

    async fn get(&self, _: &Kind, namespace: &str, name: &str) -> Result<Option<Object>, TargetError> {
        Ok(self.0.table.get(namespace, name))
    }

    async fn list(&self, _: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
        Ok(self.0.table.list(scope))
    }

    async fn watch(&self, _: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        self.0.table.watch(scope, from)
    }

    async fn apply(
        &self,
        _: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError> {
        if options.dry_run {
            return Object::from_value(manifest.value()).map_err(|e| TargetError::Invalid(e.to_string()));
        }
        let loading = json!({"type": "Ready", "status": "False", "reason": "InProgress", "message": "loading the module"});
        match self.0.table.apply(manifest, json!({"conditions": [loading]}))? {
            Ok(new) => {
                tokio::spawn(self.clone().load(new.clone()));
                Ok(new)
            }
            Err(same) => Ok(same),
        }
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
        let Some(object) = self.0.table.get("", name) else { return Ok(()) };
        if options.uid.as_deref().is_some_and(|uid| uid != object.uid()) {
            return Err(TargetError::Conflict(format!("{} is another one now", object.reference())));
        }
        if options.dry_run {
            return Ok(());
        }
        let kind = served(&object);
        self.flights().remove(&kind);
        self.0.runtime.unregister(&kind).await;
        self.0.table.remove("", name);
        Ok(())
    }

    async fn note(&self, _: &Object, _: Note) -> Result<(), TargetError> {
        Ok(())
    }
}
