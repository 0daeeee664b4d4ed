//! The embedded server itself.

use std::fmt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use horchestra_controller::store::{MemoryStore, RedbStore, Retention, RevisionedStore};
use horchestra_controller::{Controller, InProcess, Options};
use horchestra_runtime::{Journal, Runtime, RuntimeOptions, TargetFor};

use super::{EmbeddedError, EmbeddedOptions, StoreChoice};

/// An API server with its store, and whatever else the features of this crate add to it: flights,
/// a local node. Dropping it ends everything at once; [`shutdown`](Self::shutdown) does so in order.
pub struct Embedded {
    controller: Controller,
    runtime: Runtime,
    kubeconfig: PathBuf,
    #[cfg(feature = "flights")]
    _atc: horchestra_atc::Atc,
    #[cfg(feature = "systemd")]
    node: Option<horchestra_systemd::LocalNode>,
    _close: CloseOnDrop,
}

/// The name by which this process writes.
const NAME: &str = "horchestra";

impl Embedded {
    /// Starts it. When this returns, clients are answered, and the kubeconfig is written to
    /// `kubeconfig` in the data directory.
    pub async fn start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        make_directory(&options.data)?;
        let store: Arc<dyn RevisionedStore> = match options.store {
            StoreChoice::Memory => Arc::new(MemoryStore::new(Retention::default())),
            StoreChoice::Redb => {
                Arc::new(RedbStore::open(options.data.join("store.redb"), Retention::default())?)
            }
        };
        let journal = match &options.journal {
            None => None,
            Some(path) => Some(
                Journal::open(path).map_err(|source| EmbeddedError::Data { path: path.clone(), source })?,
            ),
        };
        let mut start = Options::new(store, options.data.join("pki"), options.listen);
        start.kinds = kinds()?;
        let controller = Controller::start(start).await?;
        let target = Arc::new(InProcess::new(controller.api(), NAME));
        let runtime = Runtime::new(RuntimeOptions { journal, ..RuntimeOptions::default() });
        runtime.add_target(TargetFor::Everything, target);

        #[cfg(feature = "flights")]
        let atc = start_flights(&controller, &runtime, &options).await?;
        #[cfg(feature = "systemd")]
        let node = if options.node { Some(start_node(&controller, &runtime, &options).await?) } else { None };

        let shown = runtime.clone();
        controller.add_metrics(Arc::new(move || shown.metrics()));
        #[cfg(feature = "systemd")]
        if let Some(node) = &node {
            controller.add_metrics(Arc::new(node.metrics()));
        }
        let kubeconfig = options.data.join("kubeconfig");
        controller.write_kubeconfig(&kubeconfig)?;
        Ok(Self {
            controller,
            _close: CloseOnDrop(runtime.clone()),
            runtime,
            kubeconfig,
            #[cfg(feature = "flights")]
            _atc: atc,
            #[cfg(feature = "systemd")]
            node,
        })
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        self.controller.url()
    }

    /// The file that `kubectl --kubeconfig` takes; readable by its owner alone.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The runtime in which further reconcilers can be registered.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The API server.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Ends everything in order: runs, workloads of the local node, requests, the store.
    pub async fn shutdown(self) {
        self.runtime.shutdown().await;
        #[cfg(feature = "systemd")]
        if let Some(node) = self.node {
            node.shutdown().await;
        }
        self.controller.shutdown().await;
    }
}

/// Ends a runtime with its owner.
struct CloseOnDrop(Runtime);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("url", &self.url())
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

fn make_directory(path: &Path) -> Result<(), EmbeddedError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| EmbeddedError::Data { path: path.to_owned(), source })
}

#[cfg(feature = "flights")]
async fn start_flights(
    controller: &Controller,
    runtime: &Runtime,
    options: &EmbeddedOptions,
) -> Result<horchestra_atc::Atc, EmbeddedError> {
    use horchestra_core::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use horchestra_core::{Kind, Manifest};
    use horchestra_runtime::ApplyOptions;

    let failed = |reason: String| EmbeddedError::Part { what: "the flights", reason };
    let definition = horchestra_api::airway_crd().map_err(|e| failed(e.to_string()))?;
    let definition = Manifest::new(definition).map_err(|e| failed(e.to_string()))?;
    let kind = Kind::of::<CustomResourceDefinition>();
    let apply = ApplyOptions::force(horchestra_atc::MANAGER);
    runtime.target().apply(&kind, &definition, &apply).await.map_err(|e| failed(e.to_string()))?;
    let engine = horchestra_wasm::Wasmtime::new().map_err(|e| failed(e.to_string()))?;
    let atc = horchestra_atc::AtcOptions {
        engine: Arc::new(engine),
        cache: Some(options.data.join("modules")),
        allowed_modules: Vec::new(),
        trusted_user: horchestra_controller::User::system(NAME).name,
    };
    let atc = horchestra_atc::Atc::start(runtime, atc).await.map_err(|e| failed(e.to_string()))?;
    controller.api().add_admission(Arc::new(super::admission::InProcessAdmission(atc.admission())));
    Ok(atc)
}

/// Starts the node, and the reconcilers that make Applications of Jobs and Deployments: where there
/// is no node, those wait for whoever sets their status.
#[cfg(feature = "systemd")]
async fn start_node(
    controller: &Controller,
    runtime: &Runtime,
    options: &EmbeddedOptions,
) -> Result<horchestra_systemd::LocalNode, EmbeddedError> {
    use horchestra_controller::lower;
    use horchestra_core::plan::PlanOptions;
    use horchestra_core::reconciler;
    use horchestra_runtime::ReconcilerOptions;

    let lowering = || ReconcilerOptions {
        managed_by: "horchestra-lowering".into(),
        plan: PlanOptions { manager: "horchestra-lowering".into(), ..PlanOptions::default() },
        ready_condition: false,
        ..ReconcilerOptions::default()
    };
    runtime.register(Arc::new(reconciler(lower::job)), lowering()).await;
    runtime.register(Arc::new(reconciler(lower::deployment)), lowering()).await;
    let node = horchestra_systemd::LocalNodeOptions {
        name: String::new(),
        data: options.data.join("node"),
        images: options.images.clone(),
        supervisor: options.supervisor,
        target: Arc::new(InProcess::new(controller.api(), "node")),
    };
    horchestra_systemd::LocalNode::start(node)
        .await
        .map_err(|e| EmbeddedError::Part { what: "the local node", reason: e.to_string() })
}

/// The kinds of this program that the API server has as its own.
fn kinds() -> Result<Vec<horchestra_controller::kinds::Kind>, EmbeddedError> {
    let broken = |reason: String| EmbeddedError::Part { what: "a built-in kind", reason };
    horchestra_api::crds()
        .map_err(|e| broken(e.to_string()))?
        .iter()
        .map(|crd| {
            horchestra_controller::kinds::Kind::from_definition(crd, None)
                .map_err(|e| broken(e.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
        })
        .collect()
}
