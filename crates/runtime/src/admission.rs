//! A say in what is written, for whoever reconciles it: implemented by one part of a program,
//! asked by another that serves the API.

use async_trait::async_trait;
use horchestra_core::GroupVersionKind;
use serde_json::Value;

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of the object, not of its status.
    Update,
    /// A deletion.
    Delete,
}

/// A write that is about to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// What is done.
    pub operation: Operation,
    /// The kind and version of the object.
    pub kind: GroupVersionKind,
    /// Its namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What is stored.
    pub old: Option<Value>,
    /// What would be stored.
    pub new: Option<Value>,
    /// Who asks.
    pub user: String,
    /// Whether nothing will be written.
    pub dry_run: bool,
}

/// Why a write is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The HTTP status, 400 to 499.
    pub code: u16,
    /// The reason of the Kubernetes Status, such as `Forbidden` or `Invalid`.
    pub reason: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Reviews writes before they are stored. Never called inside a transaction.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Whether it has a say in this kind at all. Must be cheap: every write asks.
    fn concerns(&self, kind: &GroupVersionKind) -> bool;

    /// Warnings for the client, or a refusal.
    async fn review(&self, review: &Review) -> Result<Vec<String>, Denied>;
}
