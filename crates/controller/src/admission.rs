//! A say for other parts of the program in what is written.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::ApiError;
use crate::kinds::Endpoint;
use crate::user::User;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, of the object or of a subresource.
    Update,
    /// A deletion, also when finalizers delay it.
    Delete,
}

/// A write about to happen.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// What is done.
    pub operation: Operation,
    /// Kind and version of the request; the objects are in the stored version.
    pub endpoint: &'a Endpoint,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// `status` or `scale`, empty for the object itself.
    pub subresource: &'a str,
    /// As stored now. `None` for creates.
    pub old: Option<&'a Value>,
    /// As it would be stored, defaulted and valid. `None` for deletes.
    pub new: Option<&'a Value>,
    /// Who asks.
    pub user: &'a User,
    /// Nothing will be written.
    pub dry_run: bool,
}

/// Validates writes in process, before they are stored.
///
/// It is asked again when a write meets a conflict and is retried, is never called inside a store transaction, and may
/// read through the same [`Api`](crate::Api). It must answer quickly: the client waits.
#[async_trait]
pub trait Admission: Send + Sync {
    /// For logs and messages.
    fn name(&self) -> &str;

    /// Whether [`admit`](Self::admit) is to be asked at all. Must be cheap: it sees every write.
    fn wants(&self, request: &AdmissionRequest<'_>) -> bool;

    /// `Err` refuses the write; use [`ApiError::Denied`] or [`ApiError::Invalid`].
    async fn admit(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError>;
}

/// Asks all, in order; the first refusal ends it.
pub(crate) async fn admit(
    all: &[Arc<dyn Admission>],
    request: &AdmissionRequest<'_>,
) -> Result<(), ApiError> {
    for admission in all {
        if admission.wants(request) {
            admission.admit(request).await?;
        }
    }
    Ok(())
}
