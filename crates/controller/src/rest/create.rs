//! New objects.

use horchestra_core::apply;
use horchestra_core::field_error::FieldError;
use serde_json::{Value, json};

use super::decode::{self, Body};
use super::meta;
use super::options::{Subresource, WriteOptions};
use super::written::Written;
use crate::admission::{AdmissionRequest, Operation};
use crate::error::Cause;
use crate::kinds::fields::text;
use crate::kinds::{Endpoint, Origin, definition, kind::Kind};
use crate::object::{self, Object, metadata_mut};
use crate::store::{Expect, StoreError, Write};
use crate::{Api, ApiError};

/// How often a generated name is drawn again.
const NAME_ATTEMPTS: usize = 8;

impl Api {
    /// Creates an object. `namespace` is ignored for cluster-scoped kinds.
    ///
    /// Errors: `AlreadyExists`, `Invalid`, `NotFound` or `Forbidden` (of the namespace), `BadRequest`, and what admission says.
    pub async fn create(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        body: impl Into<Body>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let mut warnings = deprecation(endpoint);
        let value = decode::decode(endpoint, body.into(), options.field_validation, &mut warnings)?;
        if !text(&value, &["metadata", "resourceVersion"]).is_empty() {
            return Err(ApiError::BadRequest(
                "resourceVersion should not be set on objects to be created".to_owned(),
            ));
        }
        self.store_new(endpoint, namespace, value, None, options, warnings).await
    }

    /// Creates a decoded object. An apply brings its own managed fields, made by `applied`.
    pub(crate) async fn store_new(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        value: Value,
        applied: Option<&apply::Manager>,
        options: &WriteOptions,
        warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        let kind = endpoint.kind();
        let namespace = if kind.namespaced() { namespace } else { "" };
        same_namespace(kind, namespace, &value)?;
        if let Origin::Custom { terminating: true, .. } = kind.origin {
            return Err(ApiError::MethodNotAllowed(
                "create not allowed while custom resource definition is terminating".to_owned(),
            ));
        }
        let prefix = text(&value, &["metadata", "generateName"]).to_owned();
        let generated = text(&value, &["metadata", "name"]).is_empty() && !prefix.is_empty();
        if generated && let Some(why) = kind.strategy.names().check_prefix(&prefix) {
            let error = FieldError::invalid("metadata.generateName", &json!(prefix), why);
            return Err(ApiError::Invalid { subject: Box::new(kind.subject("")), errors: vec![error] });
        }
        for attempt in 1.. {
            let mut value = value.clone();
            if generated && let Some(metadata) = metadata_mut(&mut value) {
                metadata.insert("name".to_owned(), json!(kind.strategy.names().generate(&prefix)));
            }
            match self.store_named(endpoint, namespace, value, applied, options).await {
                Err(ApiError::AlreadyExists(_)) if generated && attempt < NAME_ATTEMPTS => {}
                Ok(object) => return Ok(Written { object, warnings, created: true }),
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::Internal("no free name was found".to_owned()))
    }

    async fn store_named(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        mut value: Value,
        applied: Option<&apply::Manager>,
        options: &WriteOptions,
    ) -> Result<Object, ApiError> {
        let kind = endpoint.kind();
        meta::stamp_new(kind, namespace, &mut value);
        if endpoint.version().status
            && let Some(object) = value.as_object_mut()
        {
            object.remove("status");
        }
        decode::default(endpoint, &mut value);
        // Before the kind adds its own: what the server generates belongs to nobody.
        if applied.is_none() {
            let manager = manager(endpoint, options, Subresource::None);
            value = apply::update(None, value, endpoint.version().schema(), &manager);
        }
        kind.strategy.prepare_create(&mut value);
        if is_definition(kind) {
            // Early errors first: accepting names relies on them being valid.
            decode::validate(endpoint, &value, None)?;
            definition::accept(&mut value, &self.kinds(), &meta::now());
        }
        decode::validate(endpoint, &value, None)?;
        let name = text(&value, &["metadata", "name"]).to_owned();
        if kind.namespaced() {
            self.check_namespace(kind, namespace, &name).await?;
        }
        let request = AdmissionRequest {
            operation: Operation::Create,
            endpoint,
            namespace,
            name: &name,
            subresource: "",
            old: None,
            new: Some(&value),
            user: &options.user,
            dry_run: options.dry_run,
        };
        self.admit(&request).await?;
        let key = kind.key(namespace, &name);
        let stored = stored_form(endpoint, &mut value)?;
        if options.dry_run {
            if self.entry(&key).await?.is_some() {
                return Err(ApiError::AlreadyExists(Box::new(kind.subject(&name))));
            }
            return Ok(Object::written(&key, stored, value, 0));
        }
        let put = Write::Put { key: key.clone(), value: stored.clone(), expect: Expect::Absent };
        let revision = match self.store.write(vec![put]).await {
            Ok(revision) => revision.0,
            Err(StoreError::Conflict { .. }) => {
                return Err(ApiError::AlreadyExists(Box::new(kind.subject(&name))));
            }
            Err(error) => return Err(error.into()),
        };
        let object = Object::written(&key, stored, value, revision);
        self.wrote(kind, &object);
        Ok(object)
    }

    /// What every write does after it.
    pub(crate) fn wrote(&self, kind: &Kind, object: &Object) {
        self.cache.put(object);
        if is_definition(kind) {
            self.registry.install(object.value(), object.revision());
        }
    }

    /// Errors unless the namespace is there and not on its way out.
    async fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), ApiError> {
        let namespaces = self.resource("", "v1", "namespaces")?;
        let key = namespaces.kind().key("", namespace);
        let Some(entry) = self.entry(&key).await? else {
            return Err(ApiError::NotFound(Box::new(namespaces.kind().subject(namespace))));
        };
        if meta::deleting(self.object(&entry)?.value()) {
            return Err(ApiError::Forbidden {
                subject: Box::new(kind.subject(name)),
                message: format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                ),
                causes: vec![Cause {
                    reason: "NamespaceTerminating".to_owned(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                }],
            });
        }
        Ok(())
    }
}

/// True for the kind of definitions, whose writes change what is served.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.group == definition::GROUP && kind.plural == definition::PLURAL
}

/// What users of a deprecated version are told.
pub(crate) fn deprecation(endpoint: &Endpoint) -> Vec<String> {
    endpoint.version().deprecation.clone().into_iter().collect()
}

/// Errors when the body names another namespace than the URL.
pub(crate) fn same_namespace(kind: &Kind, namespace: &str, value: &Value) -> Result<(), ApiError> {
    let own = text(value, &["metadata", "namespace"]);
    if own.is_empty() || (kind.namespaced() && own == namespace) {
        return Ok(());
    }
    Err(ApiError::BadRequest(if kind.namespaced() {
        "the namespace of the provided object does not match the namespace sent on the request".to_owned()
    } else {
        format!("namespace {own:?} is set, but {} is not namespaced", kind.kind)
    }))
}

/// Who the written fields belong to.
pub(crate) fn manager(
    endpoint: &Endpoint,
    options: &WriteOptions,
    subresource: Subresource,
) -> apply::Manager {
    let name = if options.field_manager.is_empty() { "unknown" } else { &options.field_manager };
    apply::Manager {
        name: name.to_owned(),
        api_version: endpoint.api_version().to_owned(),
        subresource: Some(subresource.as_str()).filter(|s| !s.is_empty()).map(str::to_owned),
        time: meta::now(),
    }
}

/// Sets the stored version, and writes the object as the store keeps it.
pub(crate) fn stored_form(endpoint: &Endpoint, value: &mut Value) -> Result<bytes::Bytes, ApiError> {
    let kind = endpoint.kind();
    if let (Some(version), Some(object)) = (kind.storage(), value.as_object_mut()) {
        object.insert("apiVersion".to_owned(), json!(kind.api_version(&version.name)));
    }
    let stored = object::encode(value)?;
    if stored.len() > super::written::MAX_OBJECT {
        return Err(ApiError::TooLarge(format!(
            "{} is {} bytes long; the limit is {}",
            kind.kind,
            stored.len(),
            super::written::MAX_OBJECT
        )));
    }
    Ok(stored)
}
