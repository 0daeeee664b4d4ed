//! The pure part of Horchestra: resources, desired state, plans, the queue. No IO, no clock.

pub mod apply;
mod cluster;
mod condition;
mod desired;
mod error;
pub mod field_error;
pub mod field_path;
pub mod json;
mod kind;
pub mod managed_fields;
mod manifest;
mod object;
mod object_ref;
pub mod owner;
pub mod patch;
pub mod plan;
pub mod quantity;
pub mod queue;
mod read;
pub mod readiness;
mod reconciler;
mod resource;
pub mod schema;
pub mod selector;
pub mod strategic;
#[cfg(test)]
mod testing;

pub use async_trait::async_trait;
pub use k8s_openapi;
pub use kube_core;

pub use self::cluster::{Cluster, Source};
pub use self::condition::{Condition, READY, merge_conditions};
pub use self::desired::{DesiredState, Extent};
pub use self::error::{Error, Result};
pub use self::kind::{GroupKind, GroupVersionKind, Kind};
pub use self::manifest::Manifest;
pub use self::object::Object;
pub use self::object_ref::ObjectRef;
pub use self::owner::{Ownership, ReleaseId};
pub use self::plan::Plan;
pub use self::read::{Answer, Read, ReadSet, Seen};
pub use self::reconciler::{DynReconciler, FnReconciler, ReconcileFn, Reconciler, reconciler};
pub use self::resource::{Resource, Scoped};
