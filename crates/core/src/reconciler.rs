//! Reconcilers: the one function that everything here is about.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;

use crate::{Cluster, DesiredState, Kind, Object, Resource, Result};

/// Given a resource and what can be seen of the world, says what should exist right now.
///
/// Pure apart from its reads: no clock, no randomness, no other IO. It is called again whenever the
/// resource, something it created or something it read changes, and never two times at once for
/// the same resource.
#[async_trait]
pub trait Reconciler: Send + Sync {
    /// What it reconciles.
    type Resource: Resource;

    /// What should exist now.
    async fn reconcile(&self, resource: &Self::Resource, cluster: &Cluster) -> Result<DesiredState>;
}

/// A reconciler whose kind is known only at run time. Every [`Reconciler`] is one; a flight is
/// another.
#[async_trait]
pub trait DynReconciler: Send + Sync {
    /// What it reconciles.
    fn kind(&self) -> Kind;

    /// What should exist now. `object` is of [`kind`](Self::kind).
    async fn reconcile_object(&self, object: &Object, cluster: &Cluster) -> Result<DesiredState>;

    /// What it takes to make this reconciler again on another machine, for a journal. None for one
    /// that is compiled into its program.
    fn recipe(&self) -> Option<serde_json::Value> {
        None
    }
}

#[async_trait]
impl<R: Reconciler> DynReconciler for R {
    fn kind(&self) -> Kind {
        Kind::of::<R::Resource>()
    }

    async fn reconcile_object(&self, object: &Object, cluster: &Cluster) -> Result<DesiredState> {
        let resource: R::Resource = object.parse()?;
        self.reconcile(&resource, cluster).await
    }
}

/// An `async fn(&T, &Cluster) -> Result<DesiredState>`, in a form that says its future is `Send`.
/// Implemented for all of them; it stands only in bounds.
pub trait ReconcileFn<'a, T: 'a>: Send + Sync {
    /// The future of one call.
    type Future: Future<Output = Result<DesiredState>> + Send + 'a;

    /// Calls it.
    fn call(&self, resource: &'a T, cluster: &'a Cluster) -> Self::Future;
}

impl<'a, T, F, Fut> ReconcileFn<'a, T> for F
where
    T: 'a,
    F: Fn(&'a T, &'a Cluster) -> Fut + Send + Sync,
    Fut: Future<Output = Result<DesiredState>> + Send + 'a,
{
    type Future = Fut;

    fn call(&self, resource: &'a T, cluster: &'a Cluster) -> Fut {
        self(resource, cluster)
    }
}

/// A function as a reconciler; see [`reconciler`].
pub struct FnReconciler<T, F> {
    function: F,
    resource: PhantomData<fn(&T)>,
}

/// Makes a reconciler of an `async fn(&T, &Cluster) -> Result<DesiredState>`.
pub fn reconciler<T, F>(function: F) -> FnReconciler<T, F>
where
    T: Resource,
    F: for<'a> ReconcileFn<'a, T>,
{
    FnReconciler { function, resource: PhantomData }
}

#[async_trait]
impl<T, F> Reconciler for FnReconciler<T, F>
where
    T: Resource,
    F: for<'a> ReconcileFn<'a, T>,
{
    type Resource = T;

    async fn reconcile(&self, resource: &T, cluster: &Cluster) -> Result<DesiredState> {
        self.function.call(resource, cluster).await
    }
}

impl<T: Resource, F> fmt::Debug for FnReconciler<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reconciler of {}", Kind::of::<T>())
    }
}
