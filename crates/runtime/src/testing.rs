//! A target in memory, for tests of reconcilers with the whole runtime around them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use horchestra_core::apply::{self, ApplyError, Manager};
use horchestra_core::{GroupKind, GroupVersionKind, Kind, Manifest, Object, ObjectRef, Resource};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::{
    ApplyOptions, DeleteOptions, Listing, Note, Propagation, Revision, Scope, Target, TargetError,
    WatchEvent, WatchStream,
};

/// Objects in memory with the semantics of an API server that matter to a reconciler: server-side
/// apply, resource versions, generations, finalizers, garbage collection, watches.
///
/// It keeps its whole history, so it is for tests and not for anything that lives long.
#[derive(Clone, Default)]
pub struct MemoryTarget(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    kinds: Vec<Kind>,
    objects: BTreeMap<ObjectRef, Value>,
    log: Vec<(ObjectRef, bool, Object)>,
    notes: Vec<(ObjectRef, Note)>,
    uids: u64,
    writes: u64,
}

impl MemoryTarget {
    /// An empty target that serves no kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a kind from here on.
    pub fn serve(&self, kind: Kind) {
        self.state().kinds.push(kind);
    }

    /// Serves a type from here on.
    pub fn serve_type<T: Resource>(&self) {
        self.serve(Kind::of::<T>());
    }

    /// Creates or replaces an object as a client would, with all its metadata kept up.
    pub fn put(&self, object: Value) -> Result<Object, TargetError> {
        let manifest = Manifest::new(object).map_err(|e| TargetError::Invalid(e.to_string()))?;
        let status = manifest.value().get("status").cloned();
        let stored = self.write(&manifest.reference(), |old| {
            let mut new = manifest.value().clone();
            if let (Some(old), Some(map)) = (old, new.as_object_mut()) {
                map.insert(
                    "status".into(),
                    status.clone().or_else(|| old.get("status").cloned()).unwrap_or_else(|| json!({})),
                );
            }
            Ok(new)
        })?;
        stored.ok_or_else(|| TargetError::NotFound(manifest.reference().to_string()))
    }

    /// Changes an object in place, as a client would.
    pub fn edit(&self, object: &ObjectRef, change: impl Fn(&mut Value)) -> Result<(), TargetError> {
        self.write(object, |old| {
            let mut new = old.cloned().ok_or_else(|| TargetError::NotFound(object.to_string()))?;
            change(&mut new);
            Ok(new)
        })?;
        Ok(())
    }

    /// An object as a tree.
    pub fn peek(&self, object: &ObjectRef) -> Option<Value> {
        self.state().objects.get(object).cloned()
    }

    /// Names of all objects of a kind.
    pub fn names(&self, kind: &GroupKind) -> Vec<String> {
        self.state().objects.keys().filter(|o| o.kind == *kind).map(|o| o.name.to_string()).collect()
    }

    /// How many writes there were that changed something.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// The events that were recorded.
    pub fn notes(&self) -> Vec<(ObjectRef, Note)> {
        self.state().notes.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one change; `None` if the object is gone by it.
    fn write(
        &self,
        object: &ObjectRef,
        change: impl FnOnce(Option<&Value>) -> Result<Value, TargetError>,
    ) -> Result<Option<Object>, TargetError> {
        let mut state = self.state();
        let stored = state.write(object, change)?;
        drop(state);
        self.0.news.notify_waiters();
        Ok(stored)
    }
}

fn without(value: &Value, fields: &[&str], meta: &[&str]) -> Value {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        fields.iter().for_each(|f| drop(map.remove(*f)));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.iter().for_each(|f| drop(metadata.remove(*f)));
        }
    }
    value
}

impl State {
    fn write(
        &mut self,
        object: &ObjectRef,
        change: impl FnOnce(Option<&Value>) -> Result<Value, TargetError>,
    ) -> Result<Option<Object>, TargetError> {
        let old = self.objects.get(object).cloned();
        let mut new = change(old.as_ref())?;
        if old.as_ref() == Some(&new) {
            return parse(&new).map(Some);
        }
        let spec = |v: &Value| without(v, &["status", "metadata"], &[]);
        let generation = match &old {
            None => 1,
            Some(old) => {
                let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1);
                before + i64::from(spec(old) != spec(&new))
            }
        };
        let revision = self.log.len() + 1;
        let uid = old.as_ref().and_then(|o| o.pointer("/metadata/uid").cloned()).unwrap_or_else(|| {
            self.uids += 1;
            format!("uid-{}", self.uids).into()
        });
        let created = old.as_ref().and_then(|o| o.pointer("/metadata/creationTimestamp").cloned());
        if let Some(meta) = new.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".into(), uid);
            meta.insert("generation".into(), generation.into());
            meta.insert("resourceVersion".into(), revision.to_string().into());
            let now = || jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            meta.insert("creationTimestamp".into(), created.unwrap_or_else(|| now().into()));
        }
        self.writes += 1;
        let dead = new.pointer("/metadata/deletionTimestamp").is_some()
            && new.pointer("/metadata/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty);
        let stored = parse(&new)?;
        self.log.push((object.clone(), dead, stored.clone()));
        if !dead {
            self.objects.insert(object.clone(), new);
            return Ok(Some(stored));
        }
        self.objects.remove(object);
        self.collect(stored.uid())?;
        Ok(None)
    }

    /// Deletes what a deleted object owned.
    fn collect(&mut self, uid: &str) -> Result<(), TargetError> {
        let orphans: Vec<ObjectRef> = self
            .objects
            .iter()
            .filter(|(_, v)| {
                let owners = v.pointer("/metadata/ownerReferences").and_then(Value::as_array);
                owners.into_iter().flatten().any(|o| o.get("uid").and_then(Value::as_str) == Some(uid))
            })
            .map(|(k, _)| k.clone())
            .collect();
        orphans.iter().try_for_each(|o| self.delete(o))
    }

    fn delete(&mut self, object: &ObjectRef) -> Result<(), TargetError> {
        self.write(object, |old| {
            let mut new = old.cloned().ok_or_else(|| TargetError::NotFound(object.to_string()))?;
            if let Some(meta) = new.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.entry("deletionTimestamp").or_insert_with(|| "2026-01-01T00:00:00Z".into());
            }
            Ok(new)
        })?;
        Ok(())
    }
}

fn parse(value: &Value) -> Result<Object, TargetError> {
    Object::from_value(value).map_err(|e| TargetError::Invalid(e.to_string()))
}

#[async_trait]
impl Target for MemoryTarget {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        let matches =
            |k: &&Kind| k.group_kind() == kind.group_kind() && (kind.version.is_empty() || k.gvk == *kind);
        Ok(self.state().kinds.iter().find(matches).cloned())
    }

    async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Object>, TargetError> {
        self.peek(&ObjectRef::new(kind.group_kind(), namespace, name)).as_ref().map(parse).transpose()
    }

    async fn list(&self, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
        let state = self.state();
        let kind = kind.group_kind();
        let within = |o: &&ObjectRef| o.kind == kind && scope.contains(&o.namespace, &o.name);
        let objects = state
            .objects
            .iter()
            .filter(|(o, _)| within(o))
            .map(|(_, v)| parse(v))
            .collect::<Result<_, _>>()?;
        Ok(Listing { objects, revision: Revision(state.log.len().to_string()) })
    }

    async fn watch(&self, kind: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError> {
        let from: usize = from.0.parse().map_err(|_| TargetError::Gone(from.0.clone()))?;
        let (kind, scope, target) = (kind.group_kind(), scope.clone(), self.clone());
        Ok(stream::unfold(from, move |mut at| {
            let (kind, scope, target) = (kind.clone(), scope.clone(), target.clone());
            async move {
                loop {
                    let mut news = std::pin::pin!(target.0.news.notified());
                    news.as_mut().enable();
                    let next = target.state().log.get(at).cloned();
                    let Some((object, dead, stored)) = next else {
                        news.await;
                        continue;
                    };
                    at += 1;
                    if object.kind == kind && scope.contains(&object.namespace, &object.name) {
                        let event =
                            if dead { WatchEvent::Deleted(stored) } else { WatchEvent::Applied(stored) };
                        return Some((Ok(event), at));
                    }
                }
            }
        })
        .boxed())
    }

    async fn apply(
        &self,
        _: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError> {
        let object = manifest.reference();
        let manager = Manager {
            name: options.manager.clone(),
            api_version: manifest.gvk().api_version(),
            subresource: None,
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
        let stored = self.write(&object, |old| {
            let wanted = manifest.value().pointer("/metadata/uid").and_then(Value::as_str);
            let uid = old.and_then(|o| o.pointer("/metadata/uid")).and_then(Value::as_str);
            if wanted.is_some() && wanted != uid {
                return Err(TargetError::Conflict(format!("{object}: uid is {uid:?}, not {wanted:?}")));
            }
            apply::apply(
                old,
                &without(manifest.value(), &["status"], &["uid"]),
                None,
                &manager,
                options.force,
            )
            .map_err(|e| match e {
                ApplyError::Conflicts(_) => TargetError::Conflict(e.to_string()),
                _ => TargetError::Invalid(e.to_string()),
            })
        })?;
        stored.ok_or_else(|| TargetError::NotFound(object.to_string()))
    }

    async fn set_status(
        &self,
        seen: &Object,
        _: &Kind,
        status: Map<String, Value>,
        _: &str,
    ) -> Result<Object, TargetError> {
        let object = seen.reference();
        let stored = self.write(&object, |old| {
            let mut new = old.cloned().ok_or_else(|| TargetError::NotFound(object.to_string()))?;
            if new.pointer("/metadata/resourceVersion").and_then(Value::as_str)
                != Some(seen.resource_version())
            {
                return Err(TargetError::Conflict(format!("{object} has been modified")));
            }
            if let Some(map) = new.as_object_mut() {
                map.insert("status".into(), Value::Object(status));
            }
            Ok(new)
        })?;
        stored.ok_or_else(|| TargetError::NotFound(object.to_string()))
    }

    async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError> {
        let object = ObjectRef::new(kind.group_kind(), namespace, name);
        let mut state = self.state();
        let Some(old) = state.objects.get(&object) else { return Ok(()) };
        let uid = old.pointer("/metadata/uid").and_then(Value::as_str);
        if options.uid.is_some() && options.uid.as_deref() != uid {
            return Err(TargetError::Conflict(format!("{object}: uid is {uid:?}")));
        }
        if options.propagation == Propagation::Orphan {
            return Err(TargetError::Invalid("this target does not orphan".into()));
        }
        state.delete(&object)?;
        drop(state);
        self.0.news.notify_waiters();
        Ok(())
    }

    async fn note(&self, about: &Object, note: Note) -> Result<(), TargetError> {
        self.state().notes.push((about.reference(), note));
        Ok(())
    }
}

impl fmt::Debug for MemoryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTarget({} objects)", self.state().objects.len())
    }
}
