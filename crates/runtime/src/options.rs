//! How reconcilers are driven.

use std::time::Duration;

use horchestra_core::Object;
use horchestra_core::plan::PlanOptions;

/// Which changes, besides those of the resource itself, cause a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reaction {
    /// Any change of an object that the release owns, and of anything that was read.
    #[default]
    Dynamic,
    /// Changes of anything that was read, owned objects included, and of no others.
    Subscription,
    /// Changes of owned objects until everything is ready; then none.
    Standard,
}

/// How one reconciler is driven.
#[derive(Debug, Clone)]
pub struct ReconcilerOptions {
    /// What metrics and logs call it; the kind if empty.
    pub name: String,
    /// The value of `app.kubernetes.io/managed-by` on everything it creates.
    pub managed_by: String,
    /// A finalizer that is put on a resource before anything is created for it, and taken off when
    /// everything is removed. Without one the server's garbage collection removes children by
    /// their owner references, without any order.
    pub finalizer: Option<String>,
    /// How plans are made.
    pub plan: PlanOptions,
    /// Whether the runtime keeps a condition `Ready` in the resource's status.
    pub ready_condition: bool,
    /// Which changes cause a run.
    pub reaction: Reaction,
    /// What a resource itself says about that, if it may.
    pub reaction_of: Option<fn(&Object) -> Option<Reaction>>,
    /// Run again after this long even if nothing is known to have changed.
    pub drift_interval: Option<Duration>,
    /// How long one call of the reconciler may take.
    pub timeout: Duration,
    /// How many resources are reconciled at once.
    pub concurrency: usize,
}

impl Default for ReconcilerOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            managed_by: "horchestra".into(),
            finalizer: None,
            plan: PlanOptions::default(),
            ready_condition: true,
            reaction: Reaction::default(),
            reaction_of: None,
            drift_interval: None,
            timeout: Duration::from_secs(30),
            concurrency: 8,
        }
    }
}
