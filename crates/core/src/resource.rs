//! What may be a resource: every type that kube-core knows as one.

use kube_core::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Serialize, de::DeserializeOwned};

/// A scope that is known when the program is compiled.
pub trait Scoped {
    /// Whether objects live in namespaces.
    const NAMESPACED: bool;
}

impl Scoped for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl Scoped for ClusterResourceScope {
    const NAMESPACED: bool = false;
}

/// A type whose values are objects of an API: every type of k8s-openapi, every
/// `#[derive(CustomResource)]`. Implemented for all of them; never implement it yourself.
pub trait Resource:
    kube_core::Resource<DynamicType = (), Scope: Scoped>
    + Serialize
    + DeserializeOwned
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Resource for T where
    T: kube_core::Resource<DynamicType = (), Scope: Scoped>
        + Serialize
        + DeserializeOwned
        + Clone
        + Send
        + Sync
        + 'static
{
}
