//! A handle to everything that runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use horchestra_core::{Cluster, DynReconciler, GroupKind};

use crate::controller::Controller;
use crate::inner::Inner;
use crate::interest::Interests;
use crate::journal::Journal;
use crate::source::CacheSource;
use crate::{ReconcilerOptions, Target, TargetFor};

/// How a runtime runs.
#[derive(Debug, Default)]
pub struct RuntimeOptions {
    /// Where every run is recorded, if anywhere.
    pub journal: Option<Journal>,
    /// Whether it begins on [standby](Runtime::stand_by), until it is [activated](Runtime::activate).
    pub standby: bool,
}

/// How long runs may go on after a shutdown was asked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Drives reconcilers over targets. Clones are handles to the same runtime.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn f(target: Arc<dyn horchestra_runtime::Target>, r: Arc<dyn horchestra_core::DynReconciler>) {
/// use horchestra_runtime::{ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
///
/// let runtime = Runtime::new(RuntimeOptions::default());
/// runtime.add_target(TargetFor::Everything, target);
/// runtime.register(r, ReconcilerOptions::default()).await;
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

impl Runtime {
    /// A runtime without targets and reconcilers. Must be called within tokio.
    pub fn new(options: RuntimeOptions) -> Self {
        Self { inner: Inner::new(options.journal, !options.standby) }
    }

    /// Says where kinds live. A later target for the same kinds replaces the earlier one.
    pub fn add_target(&self, kinds: TargetFor, target: Arc<dyn Target>) {
        self.inner.router.add(kinds, target);
    }

    /// Starts a reconciler for every resource of its kind, or replaces the one that does so now:
    /// then every resource is run again. The kind need not be served yet.
    pub async fn register(&self, reconciler: Arc<dyn DynReconciler>, options: ReconcilerOptions) {
        let kind = reconciler.kind().group_kind();
        self.unregister(&kind).await;
        let controller = Controller::new(&self.inner, reconciler, options);
        self.inner.set_controller(kind, Some(controller.clone()));
        controller.start();
    }

    /// Stops the reconciler of a kind and waits for its runs. What it created stays.
    pub async fn unregister(&self, kind: &GroupKind) {
        if let Some(old) = self.inner.set_controller(kind.clone(), None) {
            old.stop(PATIENCE).await;
        }
    }

    /// Whether a kind has a reconciler.
    pub fn is_registered(&self, kind: &GroupKind) -> bool {
        self.inner.controller(kind).is_some()
    }

    /// Goes on standby: watches go on and caches stay warm, and nothing is run or written. Waits for
    /// the runs that run, at most ten seconds. For programs of which one at a time may write.
    pub async fn stand_by(&self) {
        self.inner.set_active(false);
        let all = self.inner.controllers();
        futures::future::join_all(all.iter().map(|c| c.drain(PATIENCE))).await;
    }

    /// Ends the standby: everything that there is gets a run.
    pub fn activate(&self) {
        self.inner.set_active(true);
        for controller in self.inner.controllers() {
            controller.run_all(&self.inner);
        }
    }

    /// Stops starting runs, waits for those that run, at most ten seconds, and then
    /// [closes](Self::close) it.
    pub async fn shutdown(&self) {
        let all = self.inner.controllers();
        futures::future::join_all(all.iter().map(|c| c.stop(PATIENCE))).await;
        self.close();
    }

    /// Ends it at once: reconcilers, watches and targets are let go of, and no run is waited for.
    /// It cannot be used after that. Targets may hold the runtime that they belong to, so without
    /// this neither would ever end.
    pub fn close(&self) {
        self.inner.set_active(false);
        for controller in self.inner.controllers() {
            self.inner.set_controller(controller.group_kind(), None);
            controller.cancel();
        }
        *self.inner.interests() = Interests::default();
        self.inner.router.clear();
    }

    /// A view of the world through the caches, for whoever is not a reconciler. What is read
    /// through it is watched only while it is being read.
    pub fn cluster(&self, namespace: &str) -> Cluster {
        Cluster::new(Arc::new(CacheSource { inner: self.inner.clone(), reader: None }), namespace)
    }

    /// All targets as one.
    pub fn target(&self) -> Arc<dyn Target> {
        self.inner.router.clone()
    }

    /// All metrics as OpenMetrics text.
    pub fn metrics(&self) -> String {
        self.inner.metrics.text(self.inner.caches().len())
    }

    /// How many watches run.
    pub fn watches(&self) -> usize {
        self.inner.caches().len()
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("reconcilers", &self.inner.controllers())
            .field("watches", &self.inner.caches().len())
            .field("readers", &self.inner.interests().len())
            .finish()
    }
}
