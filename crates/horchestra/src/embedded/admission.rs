//! Hands the API server's writes to whoever reviews them in this process.

use std::sync::Arc;

use async_trait::async_trait;
use horchestra_controller::ApiError;
use horchestra_controller::admission::{Admission as Asked, AdmissionRequest, Operation as Op};
use horchestra_core::GroupVersionKind;
use horchestra_runtime::{Admission, Operation, Review};

pub(super) struct InProcessAdmission(pub(super) Arc<dyn Admission>);

fn kind(request: &AdmissionRequest<'_>) -> GroupVersionKind {
    GroupVersionKind::from_manifest(request.endpoint.api_version(), &request.endpoint.kind().kind)
}

#[async_trait]
impl Asked for InProcessAdmission {
    fn name(&self) -> &str {
        "flights"
    }

    fn wants(&self, request: &AdmissionRequest<'_>) -> bool {
        // The built-in kinds are most of the writes, and nobody's here.
        request.subresource.is_empty()
            && !request.endpoint.kind().built_in()
            && self.0.concerns(&kind(request))
    }

    async fn admit(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let review = Review {
            operation: match request.operation {
                Op::Create => Operation::Create,
                Op::Update => Operation::Update,
                Op::Delete => Operation::Delete,
            },
            kind: kind(request),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            old: request.old.cloned(),
            new: request.new.cloned(),
            user: request.user.name.clone(),
            dry_run: request.dry_run,
        };
        self.0.review(&review).await.map(drop).map_err(|denied| ApiError::Denied {
            code: denied.code,
            reason: denied.reason,
            message: denied.message,
            causes: Vec::new(),
        })
    }
}
