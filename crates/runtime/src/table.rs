//! Objects of a target that lives in this process: a table with revisions that can be watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream;
use horchestra_core::{Manifest, Object};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{Listing, Revision, Scope, TargetError, WatchEvent, WatchStream};

/// How many changes a slow watcher may be behind before it has to list again.
const BACKLOG: usize = 1024;

type Key = (Arc<str>, Arc<str>);

/// The objects of one kind, in memory, for a [`Target`](crate::Target) that makes something else so.
/// Clones are the same table.
#[derive(Clone)]
pub struct Table(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    news: broadcast::Sender<(u64, bool, Object)>,
}

#[derive(Default)]
struct State {
    revision: u64,
    rows: BTreeMap<Key, Row>,
}

struct Row {
    value: Value,
    object: Object,
}

impl Default for Table {
    fn default() -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), news: broadcast::Sender::new(BACKLOG) }))
    }
}

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Object> {
        self.state().rows.get(&(namespace.into(), name.into())).map(|r| r.object.clone())
    }

    /// All objects in a scope.
    pub fn list(&self, scope: &Scope) -> Listing {
        let state = self.state();
        let within = |o: &Object| scope.contains(o.namespace(), o.name());
        let objects = state.rows.values().map(|r| r.object.clone()).filter(within).collect();
        Listing { objects, revision: Revision(state.revision.to_string()) }
    }

    /// Everything that happens in a scope after a revision, which must be the newest.
    pub fn watch(&self, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        let state = self.state();
        if from.0 != state.revision.to_string() {
            return Err(TargetError::Gone(from.0.clone()));
        }
        // Subscribed under the lock: nothing can happen in between.
        let news = self.0.news.subscribe();
        drop(state);
        let scope = scope.clone();
        Ok(stream::unfold(news, move |mut news| {
            let scope = scope.clone();
            async move {
                let within = |o: &Object| scope.contains(o.namespace(), o.name());
                let item = match news.recv().await {
                    Ok((_, true, object)) if within(&object) => Ok(WatchEvent::Deleted(object)),
                    Ok((_, false, object)) if within(&object) => Ok(WatchEvent::Applied(object)),
                    Ok((revision, ..)) => Ok(WatchEvent::Bookmark(Revision(revision.to_string()))),
                    Err(broadcast::error::RecvError::Lagged(n)) => {
                        Err(TargetError::Gone(format!("{n} changes behind")))
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                };
                Some((item, news))
            }
        })
        .boxed())
    }

    /// Takes in what should exist. `Ok(Err(object))` if that is so already; otherwise the stored
    /// object, with a new generation and the given status.
    pub fn apply(&self, manifest: &Manifest, status: Value) -> Result<Result<Object, Object>, TargetError> {
        let mut value = manifest.value().clone();
        let key = (manifest.namespace().into(), manifest.name().into());
        let mut state = self.state();
        let old = state.rows.get(&key);
        if let Some(old) = old {
            let meta = |v: &Value, f: &str| v.get("metadata").and_then(|m| m.get(f)).cloned();
            let marks = ["labels", "annotations", "ownerReferences"];
            let same = old.value.get("spec") == value.get("spec")
                && marks.iter().all(|f| meta(&old.value, f) == meta(&value, f));
            if same {
                return Ok(Err(old.object.clone()));
            }
        }
        let uid = old.map_or_else(
            || format!("{}-{}", manifest.name(), state.revision + 1),
            |o| o.object.uid().to_owned(),
        );
        let generation = old.map_or(1, |o| o.object.generation() + 1);
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".into(), uid.into());
            meta.insert("generation".into(), generation.into());
        }
        value["status"] = status;
        self.store(&mut state, key, value).map(Ok)
    }

    /// Sets the status of an object, if it is still there in this generation and says something else.
    pub fn set_status(&self, object: &Object, status: Value) -> Result<(), TargetError> {
        self.change(object.namespace(), object.name(), |value| {
            let same =
                value.pointer("/metadata/generation").and_then(Value::as_i64) == Some(object.generation());
            if same {
                value["status"] = status;
            }
        })
    }

    /// Changes an object in place; nothing happens if it is not there or the same afterwards.
    pub fn change(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), TargetError> {
        let key = (namespace.into(), name.into());
        let mut state = self.state();
        let Some(row) = state.rows.get(&key) else { return Ok(()) };
        let mut value = row.value.clone();
        change(&mut value);
        if value == row.value {
            return Ok(());
        }
        self.store(&mut state, key, value).map(drop)
    }

    /// Takes an object out.
    pub fn remove(&self, namespace: &str, name: &str) {
        let mut state = self.state();
        let Some(row) = state.rows.remove(&(namespace.into(), name.into())) else { return };
        state.revision += 1;
        let revision = state.revision;
        // The event carries the revision at which it went.
        let mut value = row.value;
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("resourceVersion".into(), revision.to_string().into());
        }
        let object = Object::from_value(&value).unwrap_or(row.object);
        // Nobody watching is fine.
        let _ = self.0.news.send((revision, true, object));
    }

    fn store(&self, state: &mut State, key: Key, mut value: Value) -> Result<Object, TargetError> {
        let revision = state.revision + 1;
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("resourceVersion".into(), revision.to_string().into());
        }
        let object = Object::from_value(&value).map_err(|e| TargetError::Invalid(e.to_string()))?;
        state.revision = revision;
        state.rows.insert(key, Row { value, object: object.clone() });
        let _ = self.0.news.send((revision, false, object.clone()));
        Ok(object)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({} objects)", self.state().rows.len())
    }
}
