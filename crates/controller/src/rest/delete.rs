//! Deletions: preconditions, finalizers, dependents.

use serde_json::{Value, json};

use super::create::is_definition;
use super::list::Listing;
use super::meta;
use super::options::{DeleteOptions, ListOptions};
use crate::admission::{AdmissionRequest, Operation};
use crate::kinds::fields::object_at;
use crate::kinds::{Endpoint, Kind, Propagation, definition};
use crate::object::Object;
use crate::rest::create::stored_form;
use crate::store::{Expect, Revision, StoreError, Write};
use crate::{Api, ApiError};

const MAX_ATTEMPTS: usize = 32;

/// What became of a deletion.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone; this is what it was.
    Gone(Object),
    /// It goes when its finalizers are done.
    Pending(Object),
}

impl Deleted {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Object {
        match self {
            Self::Gone(object) | Self::Pending(object) => object,
        }
    }
}

impl Api {
    /// Deletes an object.
    ///
    /// Errors: `NotFound`, `Conflict` when a precondition does not hold, and what admission says.
    pub async fn delete(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let kind = endpoint.kind();
        let namespace = if kind.namespaced() { namespace } else { "" };
        let key = kind.key(namespace, name);
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.entry(&key).await? else {
                return Err(ApiError::NotFound(Box::new(kind.subject(name))));
            };
            let old = self.object(&entry)?;
            preconditions(kind, &old, options)?;
            let request = AdmissionRequest {
                operation: Operation::Delete,
                endpoint,
                namespace,
                name,
                subresource: "",
                old: Some(old.value()),
                new: None,
                user: &options.user,
                dry_run: options.dry_run,
            };
            self.admit(&request).await?;
            if let Some(deleted) = self.delete_once(endpoint, &old, options).await? {
                return Ok(deleted);
            }
        }
        Err(ApiError::modified(kind.subject(name)))
    }

    /// One try. `None` when another writer was faster.
    async fn delete_once(
        &self,
        endpoint: &Endpoint,
        old: &Object,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, ApiError> {
        let kind = endpoint.kind();
        let mut new = old.value().clone();
        // The kind's own default holds for the first request only: a later one does not undo what a former asked for.
        let propagation = match options.propagation {
            None if meta::deleting(old.value()) => None,
            None => Some(kind.strategy.propagation()).filter(|p| *p != Propagation::Background),
            some => some,
        };
        let changed = meta::mark_deleted(&mut new, propagation);
        let expect = Expect::At(Revision(old.revision()));
        if meta::finished(kind, &new) {
            if options.dry_run {
                return Ok(Some(Deleted::Gone(old.clone())));
            }
            let write = Write::Delete { key: old.key().clone(), expect };
            return match self.store.write(vec![write]).await {
                Ok(revision) => {
                    let object = old.at(revision.0);
                    self.deleted(kind, &object);
                    Ok(Some(Deleted::Gone(object)))
                }
                Err(StoreError::Conflict { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
        if !changed {
            return Ok(Some(Deleted::Pending(old.clone())));
        }
        terminating(kind, &mut new, &self.kinds());
        let stored = stored_form(endpoint, &mut new)?;
        if options.dry_run {
            return Ok(Some(Deleted::Pending(Object::written(old.key(), stored, new, old.revision()))));
        }
        let write = Write::Put { key: old.key().clone(), value: stored.clone(), expect };
        match self.store.write(vec![write]).await {
            Ok(revision) => {
                let object = Object::written(old.key(), stored, new, revision.0);
                self.wrote(kind, &object);
                Ok(Some(Deleted::Pending(object)))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What every deletion does after it.
    pub(crate) fn deleted(&self, kind: &Kind, object: &Object) {
        if is_definition(kind) {
            self.registry.remove(object.name(), object.revision());
        }
    }

    /// Deletes what a list with `which` finds. The answer is what was found; an object that vanished meanwhile is left out.
    pub async fn delete_collection(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        which: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listing, ApiError> {
        let listing = self.list(endpoint, namespace, which).await?;
        let mut left = Vec::new();
        for object in listing.objects()? {
            match self.delete(endpoint, object.namespace(), object.name(), options).await {
                Ok(deleted) => left.push(deleted.object().clone()),
                Err(ApiError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(listing.with(left))
    }
}

fn preconditions(kind: &Kind, old: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    let subject = || kind.subject(old.name());
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != old.uid()) {
        return Err(ApiError::failed_operation(
            subject(),
            &format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid()),
        ));
    }
    let current = old.revision().to_string();
    if let Some(version) = options.resource_version.as_deref().filter(|version| *version != current) {
        return Err(ApiError::failed_operation(
            subject(),
            &format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {current}"
            ),
        ));
    }
    Ok(())
}

/// What the status of a kind says about being deleted.
fn terminating(kind: &Kind, object: &mut Value, kinds: &crate::kinds::Snapshot) {
    if kind.group.is_empty() && kind.plural == "namespaces" {
        if let Some(status) = object_at(object, &["status"]) {
            status.insert("phase".to_owned(), json!("Terminating"));
        }
    } else if is_definition(kind) {
        definition::accept(object, kinds, &meta::now());
    }
}
