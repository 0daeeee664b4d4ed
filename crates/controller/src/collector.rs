//! Tidying up after deletions: dependents, namespaces, definitions.
//!
//! One task follows every change in the store. It reads and deletes like any client, so that watchers and admission see
//! what it does. What it does is decided from what is stored, never from memory alone: after a restart it looks at
//! everything once and goes on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use crate::kinds::fields::{get, list, text};
use crate::kinds::kind::{Endpoint, ROOT, parse_key};
use crate::kinds::{Kind, Propagation, Registry, definition, namespace};
use crate::object::{Object, metadata_mut};
use crate::rest::meta::{self, FOREGROUND, ORPHAN};
use crate::rest::{DeleteOptions, ListOptions};
use crate::store::{Range, WatchItem};
use crate::user::User;
use crate::{Api, ApiError};

/// What could not be finished is looked at again after this.
const RETRY: Duration = Duration::from_millis(500);
/// Objects that were made while their namespace went are found by looking again this much later.
const SECOND_LOOK: Duration = Duration::from_secs(3);
const PAGE: usize = 500;

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    /// A namespace that is being deleted, or was.
    Namespace(String),
    /// A definition that is being deleted.
    Definition(String),
    /// An object: it is being deleted with finalizers of ours, or it has owners.
    Object(Arc<str>),
}

/// Collects garbage until it is dropped.
pub(crate) struct Collector {
    api: Arc<Api>,
    /// By uid of the owner: keys of objects that name it.
    dependents: HashMap<String, HashSet<Arc<str>>>,
    work: BTreeSet<Work>,
    later: Vec<(Instant, Work)>,
}

impl Collector {
    pub(crate) fn new(api: Arc<Api>) -> Self {
        Self { api, dependents: HashMap::new(), work: BTreeSet::new(), later: Vec::new() }
    }

    /// Works until `stop` is done. Starts over when the store says that changes were missed.
    pub(crate) async fn run(mut self, stop: tokio_util::sync::CancellationToken) {
        let forever = async {
            loop {
                if let Err(error) = self.follow().await {
                    tracing::warn!(%error, "garbage collection starts over");
                }
                tokio::time::sleep(RETRY).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = forever => {}
        }
    }

    async fn follow(&mut self) -> Result<(), ApiError> {
        self.dependents.clear();
        let at = self.api.store.revision();
        let mut changes = self.api.store.watch(ROOT, at).await?;
        let mut after = None;
        loop {
            let page = self.api.store.range(ROOT, Range { after, limit: Some(PAGE), at: Some(at) }).await?;
            after = page.entries.last().map(|entry| entry.key.clone());
            for entry in &page.entries {
                self.see(&entry.key, Some((&entry.value, entry.modified.0)), None);
            }
            if !page.more {
                break;
            }
            tokio::task::yield_now().await;
        }
        loop {
            self.work_off().await;
            let wait = self.later.iter().map(|(at, _)| *at).min();
            let item = match wait {
                Some(at) => match tokio::time::timeout_at(at, changes.next()).await {
                    Ok(item) => item,
                    Err(_) => continue,
                },
                None => changes.next().await,
            };
            match item {
                None => return Ok(()),
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Ok(WatchItem::Events(events))) => {
                    for event in events.iter() {
                        let now = event.value.as_ref().map(|value| (value, event.revision.0));
                        let before = event.previous.as_ref().map(|entry| (&entry.value, entry.modified.0));
                        self.see(&event.key, now, before);
                    }
                }
            }
        }
    }

    /// Takes in what is under a key now, and what was before.
    fn see(&mut self, key: &Arc<str>, now: Option<(&Bytes, u64)>, before: Option<(&Bytes, u64)>) {
        let Some((group, resource, _, name)) = parse_key(key) else { return };
        let is_definition = (group, resource) == (definition::GROUP, definition::PLURAL);
        let is_namespace = (group, resource) == ("", "namespaces");
        if let Some((bytes, revision)) = before.filter(|(b, _)| now.is_none() || mentions(b)) {
            self.forget(key, bytes, revision, now.is_none());
        }
        match now {
            None if is_definition => {
                // Another server may have deleted it.
                self.work.insert(Work::Definition(name.to_owned()));
            }
            None if is_namespace => {
                self.work.insert(Work::Namespace(name.to_owned()));
                self.later.push((Instant::now() + SECOND_LOOK, Work::Namespace(name.to_owned())));
            }
            None => {}
            Some((bytes, revision)) => {
                if is_definition && let Some(object) = self.decode(key, bytes, revision) {
                    self.api.registry.install(object.value(), revision);
                    self.work.insert(Work::Definition(name.to_owned()));
                }
                if is_namespace {
                    self.work.insert(Work::Namespace(name.to_owned()));
                }
                if mentions(bytes)
                    && let Some(object) = self.decode(key, bytes, revision)
                {
                    for owner in owners(object.value()) {
                        self.dependents
                            .entry(text(owner, &["uid"]).to_owned())
                            .or_default()
                            .insert(key.clone());
                    }
                    self.work.insert(Work::Object(key.clone()));
                }
            }
        }
    }

    fn forget(&mut self, key: &Arc<str>, bytes: &Bytes, revision: u64, gone: bool) {
        let Some(object) = self.decode(key, bytes, revision) else { return };
        for owner in owners(object.value()) {
            let uid = text(owner, &["uid"]);
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
            if gone {
                // An owner may wait for this one to go.
                self.work.extend(self.owner_key(owner, object.namespace()).map(Work::Object));
            }
        }
        if gone {
            let dependents = self.dependents.get(object.uid()).into_iter().flatten();
            self.work.extend(dependents.map(|key| Work::Object(key.clone())));
        }
    }

    fn decode(&self, key: &Arc<str>, bytes: &Bytes, revision: u64) -> Option<Object> {
        match self.api.cache.decode(key, bytes, revision) {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::error!(%key, %error, "skipped by garbage collection");
                None
            }
        }
    }

    fn owner_key(&self, owner: &Value, namespace: &str) -> Option<Arc<str>> {
        let endpoint = self.api.kind(text(owner, &["apiVersion"]), text(owner, &["kind"])).ok()?;
        let namespace = if endpoint.kind().namespaced() { namespace } else { "" };
        Some(endpoint.kind().key(namespace, text(owner, &["name"])))
    }

    async fn work_off(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, Work)> = due;
        self.work.extend(due.into_iter().map(|(_, work)| work));
        while let Some(work) = self.work.pop_first() {
            let done = match &work {
                Work::Namespace(name) => self.namespace(name).await,
                Work::Definition(name) => self.definition(name).await,
                Work::Object(key) => self.object(key).await,
            };
            let again = match done {
                Ok(done) => !done,
                Err(error) => {
                    tracing::warn!(?work, %error, "garbage collection will try again");
                    true
                }
            };
            if again && !self.later.iter().any(|(_, known)| *known == work) {
                self.later.push((Instant::now() + RETRY, work));
            }
        }
    }

    /// Empties a namespace that goes or is gone. True when nothing is left to do.
    async fn namespace(&mut self, name: &str) -> Result<bool, ApiError> {
        let endpoint = self.api.resource("", "v1", "namespaces")?;
        let there = match self.api.get(&endpoint, "", name).await {
            Ok(object) if !meta::deleting(object.value()) => return Ok(true),
            Ok(_) => true,
            Err(ApiError::NotFound(_)) => false,
            Err(error) => return Err(error),
        };
        let mut empty = true;
        for kind in self.api.kinds().kinds().iter().filter(|kind| kind.namespaced()) {
            empty &= self.empty(kind, name).await?;
        }
        if there && empty {
            self.api
                .edit(&endpoint, "", name, |object| {
                    let finalizers = object
                        .get_mut("spec")
                        .and_then(|s| s.get_mut("finalizers"))
                        .and_then(Value::as_array_mut);
                    finalizers.is_some_and(|list| {
                        let before = list.len();
                        list.retain(|f| f != namespace::FINALIZER);
                        list.len() != before
                    })
                })
                .await?;
        }
        Ok(empty)
    }

    /// Deletes the instances of a definition that goes. True when nothing is left to do.
    async fn definition(&mut self, name: &str) -> Result<bool, ApiError> {
        let endpoint = self.api.resource(definition::GROUP, "v1", definition::PLURAL)?;
        let object = match self.api.get(&endpoint, "", name).await {
            Ok(object) => object,
            Err(ApiError::NotFound(_)) => {
                self.api.registry.remove(name, self.api.store.revision().0);
                return self.names_freed(&endpoint).await.map(|()| true);
            }
            Err(error) => return Err(error),
        };
        if !meta::deleting(object.value()) {
            return Ok(true);
        }
        let kinds = self.api.kinds();
        let mut empty = true;
        for kind in kinds.kinds().iter().filter(|kind| Registry::defined_by(kind, name)) {
            empty &= self.empty(kind, "").await?;
        }
        if empty {
            self.api
                .edit(&endpoint, "", name, |object| remove_finalizer(object, definition::FINALIZER))
                .await?;
        }
        Ok(empty)
    }

    /// Serves definitions whose names were taken until now.
    async fn names_freed(&mut self, endpoint: &Endpoint) -> Result<(), ApiError> {
        for object in self.api.list(endpoint, "", &ListOptions::default()).await?.objects()? {
            if !definition::established(object.value()) {
                let kinds = self.api.kinds();
                self.api
                    .edit(endpoint, "", object.name(), |object| {
                        let before = object.clone();
                        definition::accept(object, &kinds, &meta::now());
                        *object != before
                    })
                    .await?;
            }
        }
        Ok(())
    }

    /// Deletes all objects of a kind in a namespace (everywhere for an empty one). True when none is left.
    async fn empty(&self, kind: &Arc<Kind>, namespace: &str) -> Result<bool, ApiError> {
        let Some(endpoint) = Registry::stored(kind) else { return Ok(true) };
        let mut empty = true;
        for object in self.api.list(&endpoint, namespace, &ListOptions::default()).await?.objects()? {
            if meta::deleting(object.value()) {
                empty = false;
                continue;
            }
            let deleted = self.delete(&endpoint, &object, Propagation::Background).await?;
            empty &= deleted;
        }
        Ok(empty)
    }

    /// True when the object is gone.
    async fn delete(
        &self,
        endpoint: &Endpoint,
        object: &Object,
        propagation: Propagation,
    ) -> Result<bool, ApiError> {
        let options = DeleteOptions {
            user: Arc::new(User::system("garbage-collector")),
            dry_run: false,
            uid: Some(object.uid().to_owned()),
            resource_version: None,
            propagation: Some(propagation),
        };
        match self.api.delete(endpoint, object.namespace(), object.name(), &options).await {
            Ok(crate::rest::Deleted::Gone(_)) | Err(ApiError::NotFound(_)) => Ok(true),
            Ok(crate::rest::Deleted::Pending(_)) | Err(ApiError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Looks at one object: its owners, and its own deletion. True when nothing is left to do.
    async fn object(&mut self, key: &str) -> Result<bool, ApiError> {
        let Some(entry) = self.api.entry(key).await? else { return Ok(true) };
        let object = self.api.object(&entry)?;
        let Some((group, resource, _, _)) = parse_key(key) else { return Ok(true) };
        let kinds = self.api.kinds();
        let Some(endpoint) = kinds.resource(group, resource).and_then(Registry::stored) else {
            return Ok(true);
        };
        if meta::deleting(object.value()) {
            return self.own_deletion(&endpoint, &object).await;
        }
        let references = list(object.value(), &["metadata", "ownerReferences"]);
        if references.is_empty() {
            return Ok(true);
        }
        let (mut solid, mut waiting, mut gone) = (0, false, Vec::new());
        for owner in references {
            match self.owner(owner, object.namespace()).await? {
                Owner::There => solid += 1,
                Owner::WaitsForDependents => waiting = true,
                Owner::Gone => gone.push(text(owner, &["uid"]).to_owned()),
                Owner::Unknown => solid += 1,
            }
        }
        if solid > 0 {
            // Someone still owns it: only the dead references go.
            if !gone.is_empty() {
                self.drop_owners(&endpoint, &object, &gone).await?;
            }
            return Ok(true);
        }
        let propagation = if waiting { Propagation::Foreground } else { Propagation::Background };
        let propagation =
            if self.dependents.contains_key(object.uid()) { propagation } else { Propagation::Background };
        self.delete(&endpoint, &object, propagation).await?;
        Ok(true)
    }

    async fn owner(&self, owner: &Value, namespace: &str) -> Result<Owner, ApiError> {
        let Ok(endpoint) = self.api.kind(text(owner, &["apiVersion"]), text(owner, &["kind"])) else {
            // Not served, or not yet: nothing is deleted on a guess.
            return Ok(Owner::Unknown);
        };
        match self.api.get(&endpoint, namespace, text(owner, &["name"])).await {
            Ok(found) if found.uid() != text(owner, &["uid"]) => Ok(Owner::Gone),
            Ok(found) => {
                let waits =
                    meta::deleting(found.value()) && meta::finalizers(found.value()).contains(&FOREGROUND);
                Ok(if waits { Owner::WaitsForDependents } else { Owner::There })
            }
            Err(ApiError::NotFound(_)) => Ok(Owner::Gone),
            Err(error) => Err(error),
        }
    }

    async fn drop_owners(
        &self,
        endpoint: &Endpoint,
        object: &Object,
        uids: &[String],
    ) -> Result<(), ApiError> {
        self.api
            .edit(endpoint, object.namespace(), object.name(), |value| {
                let Some(metadata) = metadata_mut(value) else { return false };
                let Some(list) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
                    return false;
                };
                let before = list.len();
                list.retain(|owner| !uids.iter().any(|uid| uid == text(owner, &["uid"])));
                let changed = list.len() != before;
                if list.is_empty() {
                    metadata.remove("ownerReferences");
                }
                changed
            })
            .await?;
        Ok(())
    }

    /// Finalizers that are ours: orphaning, and waiting for dependents.
    async fn own_deletion(&mut self, endpoint: &Endpoint, object: &Object) -> Result<bool, ApiError> {
        let finalizers = meta::finalizers(object.value());
        let keys: Vec<Arc<str>> = self.dependents.get(object.uid()).into_iter().flatten().cloned().collect();
        if finalizers.contains(&ORPHAN) {
            for key in &keys {
                if let Some((endpoint, dependent)) = self.load(key).await? {
                    self.drop_owners(&endpoint, &dependent, &[object.uid().to_owned()]).await?;
                }
            }
            self.unfinalize(endpoint, object, ORPHAN).await?;
        } else if finalizers.contains(&FOREGROUND) {
            let mut blocked = false;
            for key in &keys {
                let Some((kind, dependent)) = self.load(key).await? else { continue };
                let blocks = list(dependent.value(), &["metadata", "ownerReferences"]).iter().any(|owner| {
                    text(owner, &["uid"]) == object.uid()
                        && get(owner, &["blockOwnerDeletion"]) == Some(&Value::Bool(true))
                });
                self.work.insert(Work::Object(key.clone()));
                let others = list(dependent.value(), &["metadata", "ownerReferences"]).len() > 1;
                let gone = if others || meta::deleting(dependent.value()) {
                    false
                } else {
                    let has_own = self.dependents.contains_key(dependent.uid());
                    let how = if has_own { Propagation::Foreground } else { Propagation::Background };
                    self.delete(&kind, &dependent, how).await?
                };
                blocked |= blocks && !gone;
            }
            if blocked {
                return Ok(false);
            }
            self.unfinalize(endpoint, object, FOREGROUND).await?;
        }
        Ok(true)
    }

    async fn load(&self, key: &str) -> Result<Option<(Endpoint, Object)>, ApiError> {
        let Some((group, resource, _, _)) = parse_key(key) else { return Ok(None) };
        let kinds = self.api.kinds();
        let Some(endpoint) = kinds.resource(group, resource).and_then(Registry::stored) else {
            return Ok(None);
        };
        let Some(entry) = self.api.entry(key).await? else { return Ok(None) };
        Ok(Some((endpoint, self.api.object(&entry)?)))
    }

    async fn unfinalize(
        &self,
        endpoint: &Endpoint,
        object: &Object,
        finalizer: &str,
    ) -> Result<(), ApiError> {
        self.api
            .edit(endpoint, object.namespace(), object.name(), |value| remove_finalizer(value, finalizer))
            .await?;
        Ok(())
    }
}

/// The state of an owner.
enum Owner {
    There,
    WaitsForDependents,
    Gone,
    /// Its kind is not served.
    Unknown,
}

fn owners(object: &Value) -> &[Value] {
    list(object, &["metadata", "ownerReferences"])
}

/// A cheap look at stored bytes: whether the collector has to decode them.
fn mentions(bytes: &[u8]) -> bool {
    contains(bytes, b"\"ownerReferences\":") || contains(bytes, b"\"deletionTimestamp\":")
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn remove_finalizer(object: &mut Value, finalizer: &str) -> bool {
    let Some(metadata) = metadata_mut(object) else { return false };
    let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|f| f != finalizer);
    let changed = list.len() != before;
    if list.is_empty() {
        metadata.remove("finalizers");
    }
    changed
}
