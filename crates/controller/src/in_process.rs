//! The API server as a target of reconcilers in the same process.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use horchestra_core::selector::FieldSelector;
use horchestra_core::{GroupVersionKind, Kind as CoreKind, Manifest, Object as CoreObject};
use horchestra_runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Propagation, Revision, Scope, Target, TargetError,
    WatchEvent, WatchStream,
};
use serde_json::{Map, Value};

use crate::kinds::{Endpoint, Propagation as Dependents};
use crate::object::Object;
use crate::rest::{
    self, Change, EventKind, ListOptions, Selection, Subresource, WatchItem, WatchOptions, WriteOptions,
};
use crate::user::User;
use crate::{Api, ApiError};

/// Calls the API without HTTP, as one user: the same checks and the same semantics, a hundred times cheaper.
#[derive(Debug, Clone)]
pub struct InProcess {
    api: Arc<Api>,
    user: Arc<User>,
}

impl InProcess {
    /// A target that acts as the part of this program with this name.
    #[must_use]
    pub fn new(api: Arc<Api>, name: &str) -> Self {
        Self { api, user: Arc::new(User::system(name)) }
    }

    fn endpoint(&self, kind: &CoreKind) -> Result<Endpoint, TargetError> {
        self.api.kind(&kind.gvk.api_version(), &kind.gvk.kind).map_err(error)
    }

    fn write_options(&self, manager: &str, dry_run: bool, force: bool) -> WriteOptions {
        WriteOptions { user: self.user.clone(), dry_run, force, ..WriteOptions::system(manager) }
    }
}

fn error(e: ApiError) -> TargetError {
    let text = e.to_string();
    match e {
        ApiError::NotFound(_) | ApiError::UnknownPath => TargetError::NotFound(text),
        ApiError::AlreadyExists(_) | ApiError::Conflict { .. } => TargetError::Conflict(text),
        ApiError::Forbidden { .. } | ApiError::Unauthorized => TargetError::Forbidden(text),
        ApiError::Expired(_) | ApiError::FutureRevision { .. } => TargetError::Gone(text),
        ApiError::Timeout(_)
        | ApiError::TooManyRequests(_)
        | ApiError::Unavailable(_)
        | ApiError::Internal(_) => TargetError::Unavailable { message: text, retry_after: None },
        _ => TargetError::Invalid(text),
    }
}

fn convert(object: &Object, endpoint: &Endpoint) -> Result<CoreObject, TargetError> {
    let mut json = Vec::new();
    object.write(endpoint.api_version(), &endpoint.kind().kind, &mut json);
    CoreObject::from_json(&json).map_err(|e| TargetError::Invalid(e.to_string()))
}

fn selection(scope: &Scope) -> Result<(&str, Selection), TargetError> {
    let mut selection = Selection::default();
    let namespace = match scope {
        Scope::All => "",
        Scope::Namespace(namespace) => namespace,
        Scope::Name(namespace, name) => {
            selection.fields = FieldSelector::parse(&format!("metadata.name={name}"))
                .map_err(|e| TargetError::Invalid(e.to_string()))?;
            namespace
        }
    };
    Ok((namespace, selection))
}

#[async_trait]
impl Target for InProcess {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<CoreKind>, TargetError> {
        let snapshot = self.api.kinds();
        let Some(found) = snapshot.kind(&kind.group, &kind.kind) else { return Ok(None) };
        let version = if kind.version.is_empty() {
            found.storage().map(|v| v.name.to_string()).unwrap_or_default()
        } else {
            kind.version.to_string()
        };
        Ok(found.served(&version).map(|_| CoreKind {
            gvk: GroupVersionKind::new(kind.group.clone(), version, kind.kind.clone()),
            plural: found.plural.to_string().into(),
            namespaced: found.namespaced(),
        }))
    }

    async fn get(
        &self,
        kind: &CoreKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<CoreObject>, TargetError> {
        let endpoint = self.endpoint(kind)?;
        match self.api.get(&endpoint, namespace, name).await {
            Ok(object) => convert(&object, &endpoint).map(Some),
            Err(ApiError::NotFound(_)) => Ok(None),
            Err(e) => Err(error(e)),
        }
    }

    async fn list(&self, kind: &CoreKind, scope: &Scope) -> Result<Listing, TargetError> {
        let endpoint = self.endpoint(kind)?;
        let (namespace, selection) = selection(scope)?;
        let options = ListOptions { selection, ..ListOptions::default() };
        let listing = self.api.list(&endpoint, namespace, &options).await.map_err(error)?;
        let objects = listing.objects().map_err(error)?;
        Ok(Listing {
            objects: objects.iter().map(|o| convert(o, &endpoint)).collect::<Result<_, _>>()?,
            revision: Revision(listing.revision.to_string()),
        })
    }

    async fn watch(
        &self,
        kind: &CoreKind,
        scope: &Scope,
        from: &Revision,
    ) -> Result<WatchStream, TargetError> {
        let endpoint = self.endpoint(kind)?;
        let (namespace, selection) = selection(scope)?;
        let options = WatchOptions {
            selection,
            resource_version: from.0.clone(),
            bookmarks: true,
            initial_events: Some(false),
            timeout: None,
        };
        let watch = self.api.watch(&endpoint, namespace, &options).await.map_err(error)?;
        let events = stream::unfold((watch, endpoint), |(mut watch, endpoint)| async move {
            let item = match watch.next().await? {
                Err(e) => Err(error(e)),
                Ok(WatchItem::Bookmark { revision, .. }) => {
                    Ok(WatchEvent::Bookmark(Revision(revision.to_string())))
                }
                Ok(WatchItem::Event(EventKind::Deleted, object)) => {
                    convert(&object, &endpoint).map(WatchEvent::Deleted)
                }
                Ok(WatchItem::Event(_, object)) => convert(&object, &endpoint).map(WatchEvent::Applied),
            };
            Some((item, (watch, endpoint)))
        });
        Ok(events.boxed())
    }

    async fn apply(
        &self,
        kind: &CoreKind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<CoreObject, TargetError> {
        let endpoint = self.endpoint(kind)?;
        let write = self.write_options(&options.manager, options.dry_run, options.force);
        let written = self
            .api
            .apply(&endpoint, manifest.namespace(), manifest.name(), manifest.value().clone(), &write)
            .await
            .map_err(error)?;
        convert(&written.object, &endpoint)
    }

    async fn set_status(
        &self,
        seen: &CoreObject,
        kind: &CoreKind,
        status: Map<String, Value>,
        manager: &str,
    ) -> Result<CoreObject, TargetError> {
        let endpoint = self.endpoint(kind)?;
        let mut body = seen.to_value();
        if let Some(map) = body.as_object_mut() {
            map.insert("status".to_owned(), Value::Object(status));
        }
        let options = WriteOptions {
            // Fields that a type has and a schema does not are dropped, as a client would see it.
            field_validation: rest::FieldValidation::Ignore,
            ..self.write_options(manager, false, false)
        };
        let target = rest::Target {
            endpoint: &endpoint,
            namespace: seen.namespace(),
            name: seen.name(),
            subresource: Subresource::Status,
        };
        let written = self.api.change(target, Change::Replace(body.into()), &options).await.map_err(error)?;
        convert(&written.object, &endpoint)
    }

    async fn delete(
        &self,
        kind: &CoreKind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError> {
        let endpoint = self.endpoint(kind)?;
        let delete = rest::DeleteOptions {
            user: self.user.clone(),
            dry_run: options.dry_run,
            uid: options.uid.clone(),
            resource_version: None,
            propagation: Some(match options.propagation {
                Propagation::Background => Dependents::Background,
                Propagation::Foreground => Dependents::Foreground,
                Propagation::Orphan => Dependents::Orphan,
            }),
        };
        match self.api.delete(&endpoint, namespace, name, &delete).await {
            Ok(_) | Err(ApiError::NotFound(_)) => Ok(()),
            Err(e) => Err(error(e)),
        }
    }

    async fn note(&self, about: &CoreObject, note: Note) -> Result<(), TargetError> {
        let endpoint = self.api.kind("v1", "Event").map_err(error)?;
        let (namespace, name) = (note.namespace(about), note.event_name(about));
        let before = match self.api.get(&endpoint, namespace, &name).await {
            Ok(event) => Some(event),
            Err(ApiError::NotFound(_)) => None,
            Err(e) => return Err(error(e)),
        };
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = note.event(about, &self.user.name, &now, before.as_ref().map(|e| e.value()));
        let options = self.write_options(&self.user.name, false, true);
        self.api.apply(&endpoint, namespace, &name, event, &options).await.map(drop).map_err(error)
    }
}
