//! Which target a kind lives in.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use horchestra_core::{GroupVersionKind, Kind, Manifest, Object};
use serde_json::{Map, Value};

use crate::{ApplyOptions, DeleteOptions, Listing, Note, Revision, Scope, Target, TargetError, WatchStream};

/// What a target is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TargetFor {
    /// Every kind that no other target has.
    Everything,
    /// The kinds of one API group.
    Group(Arc<str>),
}

/// Several targets as one: each kind belongs to one of them.
#[derive(Default)]
pub(crate) struct Router {
    targets: RwLock<HashMap<TargetFor, Arc<dyn Target>>>,
}

impl Router {
    pub(crate) fn add(&self, kinds: TargetFor, target: Arc<dyn Target>) {
        self.targets.write().unwrap_or_else(PoisonError::into_inner).insert(kinds, target);
    }

    /// Lets go of all targets.
    pub(crate) fn clear(&self) {
        self.targets.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn of(&self, group: &Arc<str>) -> Result<Arc<dyn Target>, TargetError> {
        let targets = self.targets.read().unwrap_or_else(PoisonError::into_inner);
        targets
            .get(&TargetFor::Group(group.clone()))
            .or_else(|| targets.get(&TargetFor::Everything))
            .cloned()
            .ok_or_else(|| {
                TargetError::Invalid(format!(
                    "no target has the group {group:?}; add one with Runtime::add_target"
                ))
            })
    }
}

#[async_trait]
impl Target for Router {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        self.of(&kind.group)?.resolve(kind).await
    }

    async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Object>, TargetError> {
        self.of(&kind.gvk.group)?.get(kind, namespace, name).await
    }

    async fn list(&self, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
        self.of(&kind.gvk.group)?.list(kind, scope).await
    }

    async fn watch(&self, kind: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        self.of(&kind.gvk.group)?.watch(kind, scope, from).await
    }

    async fn apply(
        &self,
        kind: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError> {
        self.of(&kind.gvk.group)?.apply(kind, manifest, options).await
    }

    async fn set_status(
        &self,
        seen: &Object,
        kind: &Kind,
        status: Map<String, Value>,
        manager: &str,
    ) -> Result<Object, TargetError> {
        self.of(&kind.gvk.group)?.set_status(seen, kind, status, manager).await
    }

    async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError> {
        self.of(&kind.gvk.group)?.delete(kind, namespace, name, options).await
    }

    async fn note(&self, about: &Object, note: Note) -> Result<(), TargetError> {
        self.of(&about.gvk().group)?.note(about, note).await
    }
}
