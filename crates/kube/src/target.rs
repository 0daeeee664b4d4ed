//! The target.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use horchestra_core::{GroupVersionKind, Kind, Manifest, Object};
use horchestra_runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Propagation, Revision, Scope, Target, TargetError,
    WatchStream,
};
use kube_client::Client;
use kube_core::params::{
    DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use serde_json::{Map, Value};

use crate::error::{of_building, of_request};
use crate::path::{collection, segment};
use crate::{discovery, listing, watch};

/// How long one request may take that is not a watch. kube-apiserver ends its own after 60 s.
const PATIENCE: Duration = Duration::from_secs(65);
/// Who is said to report events.
const REPORTER: &str = "horchestra";

/// Objects of a Kubernetes API server. Clones share the connections.
#[derive(Clone)]
pub struct KubeTarget {
    client: Client,
}

impl KubeTarget {
    /// The server of a client; [`connect`](crate::connect) finds the usual one.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client, for what a target does not do.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads the object that it answers.
    pub(crate) async fn ask(
        &self,
        kind: &Kind,
        request: http::Request<Vec<u8>>,
    ) -> Result<Object, TargetError> {
        let answer = self.text(request).await?;
        let value = serde_json::from_str(&answer).map_err(|e| TargetError::Unavailable {
            message: format!("the answer about {kind} cannot be read: {e}"),
            retry_after: None,
        })?;
        listing::object(kind, value)
    }

    async fn text(&self, request: http::Request<Vec<u8>>) -> Result<String, TargetError> {
        let path = request.uri().path().to_owned();
        match tokio::time::timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(of_request),
            Err(_) => Err(TargetError::Unavailable {
                message: format!("{path}: no answer within {PATIENCE:?}"),
                retry_after: None,
            }),
        }
    }
}

#[async_trait]
impl Target for KubeTarget {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        discovery::resolve(&self.client, kind).await
    }

    async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Object>, TargetError> {
        let place = collection(kind, namespace)?;
        let request = place.get(segment("name", name)?, &GetParams::default()).map_err(of_building)?;
        match self.ask(kind, request).await {
            Ok(object) => Ok(Some(object)),
            Err(TargetError::NotFound(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn list(&self, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
        listing::list(&self.client, kind, scope).await
    }

    async fn watch(&self, kind: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        watch::watch(&self.client, kind, scope, from).await
    }

    async fn apply(
        &self,
        kind: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError> {
        let place = collection(kind, manifest.namespace())?;
        let params = PatchParams {
            dry_run: options.dry_run,
            force: options.force,
            field_manager: Some(options.manager.clone()),
            ..PatchParams::default()
        };
        let patch = Patch::Apply(manifest.value());
        let request = place.patch(segment("name", manifest.name())?, &params, &patch).map_err(of_building)?;
        self.ask(kind, request).await
    }

    async fn set_status(
        &self,
        seen: &Object,
        kind: &Kind,
        status: Map<String, Value>,
        manager: &str,
    ) -> Result<Object, TargetError> {
        // With the resource version that was seen, so that a write in between is a conflict.
        let mut body = seen.to_value();
        if let Some(map) = body.as_object_mut() {
            map.insert("status".to_owned(), Value::Object(status));
        }
        let body = serde_json::to_vec(&body).map_err(|e| TargetError::Invalid(e.to_string()))?;
        let params = PostParams { dry_run: false, field_manager: Some(manager.to_owned()) };
        let request = collection(kind, seen.namespace())?
            .replace_subresource("status", segment("name", seen.name())?, &params, body)
            .map_err(of_building)?;
        self.ask(kind, request).await
    }

    async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError> {
        let params = DeleteParams {
            dry_run: options.dry_run,
            grace_period_seconds: None,
            propagation_policy: Some(match options.propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            }),
            preconditions: options
                .uid
                .clone()
                .map(|uid| Preconditions { resource_version: None, uid: Some(uid) }),
        };
        let request =
            collection(kind, namespace)?.delete(segment("name", name)?, &params).map_err(of_building)?;
        match self.text(request).await {
            Ok(_) | Err(TargetError::NotFound(_)) => Ok(()),
            Err(e) => Err(e),
        }
    }

    async fn note(&self, about: &Object, note: Note) -> Result<(), TargetError> {
        let kind = Note::event_kind();
        let (namespace, name) = (note.namespace(about).to_owned(), note.event_name(about));
        let before = self.get(&kind, &namespace, &name).await?.map(|o| o.to_value());
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = Manifest::new(note.event(about, REPORTER, &now, before.as_ref()))
            .map_err(|e| TargetError::Invalid(e.to_string()))?;
        self.apply(&kind, &event, &ApplyOptions::force(REPORTER)).await.map(drop)
    }
}

impl fmt::Debug for KubeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeTarget").finish_non_exhaustive()
    }
}
