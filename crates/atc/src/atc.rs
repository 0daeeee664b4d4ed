//! Everything together.

use std::path::PathBuf;
use std::sync::Arc;

use horchestra_core::plan::{Adopt, PlanOptions};
use horchestra_runtime::{Admission, ReconcilerOptions, Runtime, TargetFor};
use horchestra_wasm::{Cache, FlightEngine};

use crate::AtcError;
use crate::admission::FlightAdmission;
use crate::airway::{AIRWAY_FINALIZER, AirwayReconciler};
use crate::module::Modules;
use crate::registration::{GROUP, MANAGED_BY, MANAGER, Registrations};

/// How an ATC is started.
#[derive(Debug, Clone)]
pub struct AtcOptions {
    /// The engine that runs flights.
    pub engine: Arc<dyn FlightEngine>,
    /// The directory of compiled modules; without one they are compiled by every process.
    pub cache: Option<PathBuf>,
    /// Patterns of modules that may be used; none allows all.
    pub allowed_modules: Vec<String>,
    /// The user whose writes are not reviewed: the one by which this program writes.
    pub trusted_user: String,
}

/// The Air Traffic Controller: reconciles Airways, and the resources of their kinds by flights.
#[derive(Debug)]
pub struct Atc {
    registrations: Registrations,
    runtime: Runtime,
    trusted: String,
}

impl Atc {
    /// Starts it on a runtime whose target serves Airways; [`horchestra_api::airway_crd`] defines them.
    pub async fn start(runtime: &Runtime, options: AtcOptions) -> Result<Self, AtcError> {
        let cache = match &options.cache {
            Some(directory) => Cache::open(directory).map_err(|e| AtcError::Cache(e.to_string()))?,
            None => Cache::in_memory(),
        };
        let modules = Modules::new(options.engine, cache, &options.allowed_modules)?;
        let registrations = Registrations::new(runtime.clone(), modules);
        runtime.add_target(TargetFor::Group(GROUP.into()), Arc::new(registrations.clone()));
        let airways = ReconcilerOptions {
            name: "airways".into(),
            managed_by: MANAGED_BY.into(),
            finalizer: Some(AIRWAY_FINALIZER.into()),
            plan: PlanOptions {
                manager: MANAGER.into(),
                adopt: Adopt::Unowned,
                cross_namespace: true,
                // The kind goes with its Airway, and its resources with the kind.
                prune_crds: true,
                prune_namespaces: false,
            },
            ..ReconcilerOptions::default()
        };
        runtime.register(Arc::new(AirwayReconciler), airways).await;
        Ok(Self { registrations, runtime: runtime.clone(), trusted: options.trusted_user })
    }

    /// The checks of Airways and their resources, for whoever serves the API.
    pub fn admission(&self) -> Arc<dyn Admission> {
        Arc::new(FlightAdmission::new(self.runtime.clone(), self.registrations.clone(), self.trusted.clone()))
    }
}
