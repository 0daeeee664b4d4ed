//! Changes of objects: update, patch, apply, and the loop that they share.

use horchestra_core::apply;
use serde_json::Value;

use super::create::{deprecation, is_definition, manager, stored_form};
use super::decode::{self, Body};
use super::meta;
use super::options::{Subresource, WriteOptions};
use super::propose::{apply_error, preconditions, prepare, propose, set_field, with_status};
use super::written::Written;
use crate::admission::{AdmissionRequest, Operation};
use crate::kinds::fields::text;
use crate::kinds::{Endpoint, definition};
use crate::object::{Object, metadata_mut};
use crate::store::{Expect, Revision, StoreError, Write};
use crate::{Api, ApiError};

/// How often a write that met another one is tried again, when the client did not name a version.
const MAX_ATTEMPTS: usize = 32;

/// How an object is to change.
#[derive(Debug, Clone)]
pub enum Change {
    /// To this. `metadata.resourceVersion`, if given, must be the current one.
    Replace(Body),
    /// By RFC 6902.
    JsonPatch(Value),
    /// By RFC 7386.
    MergePatch(Value),
    /// By Kubernetes' own rules for its kinds.
    StrategicPatch(Value),
    /// By server-side apply. Creates what is not there.
    Apply(Body),
}

/// The object to change.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Kind and version.
    pub endpoint: &'a Endpoint,
    /// Ignored for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// What of it is written.
    pub subresource: Subresource,
}

impl Target<'_> {
    fn key(&self) -> std::sync::Arc<str> {
        let namespace = if self.endpoint.kind().namespaced() { self.namespace } else { "" };
        self.endpoint.kind().key(namespace, self.name)
    }

    pub(super) fn subject(&self) -> crate::error::Subject {
        self.endpoint.kind().subject(self.name)
    }
}

enum Attempt {
    Done(Object),
    Again,
}

impl Api {
    /// Changes an object.
    ///
    /// A change without `resourceVersion` is tried again when another writer was faster. Errors: `NotFound` (except for
    /// apply), `Conflict`, `Invalid`, `BadRequest`, and what admission says.
    pub async fn change(
        &self,
        target: Target<'_>,
        change: Change,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let mut warnings = deprecation(target.endpoint);
        let change = prepare(target, change, options, &mut warnings)?;
        let key = target.key();
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.entry(&key).await? else {
                if let (Change::Apply(body), Subresource::None) = (&change, target.subresource) {
                    match self.create_applied(target, &body.value, options, warnings.clone()).await {
                        Err(ApiError::AlreadyExists(_)) => continue,
                        other => return other,
                    }
                }
                return Err(ApiError::NotFound(Box::new(target.subject())));
            };
            let old = self.object(&entry)?;
            let mut found = warnings.clone();
            match self.attempt(target, &old, &change, options, &mut found).await? {
                Attempt::Done(object) => return Ok(Written { object, warnings: found, created: false }),
                Attempt::Again => {}
            }
        }
        Err(ApiError::modified(target.subject()))
    }

    /// Replaces an object; see [`change`](Self::change).
    pub async fn update(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        body: impl Into<Body> + Send,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let target = Target { endpoint, namespace, name, subresource: Subresource::None };
        self.change(target, Change::Replace(body.into()), options).await
    }

    /// Replaces the status of an object; see [`change`](Self::change).
    pub async fn update_status(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        body: impl Into<Body> + Send,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let target = Target { endpoint, namespace, name, subresource: Subresource::Status };
        self.change(target, Change::Replace(body.into()), options).await
    }

    /// Server-side apply; see [`change`](Self::change).
    pub async fn apply(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        body: impl Into<Body> + Send,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let target = Target { endpoint, namespace, name, subresource: Subresource::None };
        self.change(target, Change::Apply(body.into()), options).await
    }

    async fn create_applied(
        &self,
        target: Target<'_>,
        body: &Value,
        options: &WriteOptions,
        warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        let endpoint = target.endpoint;
        if !text(body, &["metadata", "uid"]).is_empty() {
            return Err(ApiError::Conflict {
                subject: Box::new(target.subject()),
                message: format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    text(body, &["metadata", "uid"])
                ),
                causes: Vec::new(),
            });
        }
        let manager = manager(endpoint, options, Subresource::None);
        let value = apply::apply(None, body, endpoint.version().schema(), &manager, options.force)
            .map_err(|error| apply_error(target, error))?;
        let mut value = value;
        if let Some(metadata) = metadata_mut(&mut value) {
            metadata.remove("resourceVersion");
        }
        self.store_new(endpoint, target.namespace, value, Some(&manager), options, warnings).await
    }

    async fn attempt(
        &self,
        target: Target<'_>,
        old: &Object,
        change: &Change,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Attempt, ApiError> {
        let endpoint = target.endpoint;
        let kind = endpoint.kind();
        let status_apart = endpoint.version().status;
        let before = old.value_as(endpoint.api_version());
        let mut new = propose(target, &before, change, options, warnings)?;
        preconditions(target, change, &before, &new)?;

        if target.subresource == Subresource::Status {
            new = with_status(&before, &new);
        } else if status_apart {
            set_field(&mut new, "status", before.get("status").cloned());
        }
        meta::keep_system(kind, &before, &mut new);
        decode::default(endpoint, &mut new);
        if !matches!(change, Change::Apply(_)) {
            let manager = manager(endpoint, options, target.subresource);
            new = apply::update(Some(&before), new, endpoint.version().schema(), &manager);
        }
        if target.subresource == Subresource::None {
            kind.strategy.prepare_update(&before, &mut new);
        }
        if is_definition(kind) && target.subresource == Subresource::None {
            decode::validate(endpoint, &new, Some(&before))?;
            definition::accept(&mut new, &self.kinds(), &meta::now());
        }
        if target.subresource != Subresource::Status && meta::spec_changed(&before, &new, status_apart) {
            meta::bump_generation(&mut new);
        }
        decode::validate(endpoint, &new, Some(&before))?;
        let namespace = old.namespace().to_owned();
        let request = AdmissionRequest {
            operation: Operation::Update,
            endpoint,
            namespace: &namespace,
            name: target.name,
            subresource: target.subresource.as_str(),
            old: Some(&before),
            new: Some(&new),
            user: &options.user,
            dry_run: options.dry_run,
        };
        self.admit(&request).await?;
        self.commit(target, old, &before, new, options.dry_run).await
    }

    /// Stores `new` in place of `old`, or deletes it when that was all that kept it.
    async fn commit(
        &self,
        target: Target<'_>,
        old: &Object,
        before: &Value,
        mut new: Value,
        dry_run: bool,
    ) -> Result<Attempt, ApiError> {
        let kind = target.endpoint.kind();
        if meta::unchanged(before, &new) {
            return Ok(Attempt::Done(old.clone()));
        }
        let stored = stored_form(target.endpoint, &mut new)?;
        if dry_run {
            return Ok(Attempt::Done(Object::written(old.key(), stored, new, old.revision())));
        }
        let expect = Expect::At(Revision(old.revision()));
        let key = old.key().clone();
        let gone = meta::deleting(&new) && meta::finished(kind, &new);
        let write = if gone {
            Write::Delete { key: key.clone(), expect }
        } else {
            Write::Put { key: key.clone(), value: stored.clone(), expect }
        };
        match self.store.write(vec![write]).await {
            Ok(revision) => {
                let object = Object::written(&key, stored, new, revision.0);
                if gone {
                    self.deleted(kind, &object);
                } else {
                    self.wrote(kind, &object);
                }
                Ok(Attempt::Done(object))
            }
            Err(StoreError::Conflict { .. }) => Ok(Attempt::Again),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes an object as a part of the server: no rules, no admission, no managed fields. `edit` says whether it
    /// changed anything. `None` when the object is not there (any more).
    pub(crate) async fn edit(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        edit: impl Fn(&mut Value) -> bool,
    ) -> Result<Option<Object>, ApiError> {
        let target = Target { endpoint, namespace, name, subresource: Subresource::None };
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.entry(&target.key()).await? else { return Ok(None) };
            let old = self.object(&entry)?;
            let mut new = old.value().clone();
            if !edit(&mut new) {
                return Ok(Some(old));
            }
            if let Attempt::Done(object) = self.commit(target, &old, old.value(), new, false).await? {
                return Ok(Some(object));
            }
        }
        Err(ApiError::modified(target.subject()))
    }
}
