//! The read side of the world, and the only one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::{Answer, Error, GroupVersionKind, Kind, Object, Read, ReadSet, Resource, Result};

/// Where answers come from: a cache, a flight's host, a file, a test.
#[async_trait]
pub trait Source: Send + Sync {
    /// Answers one read. [`Error::Pending`] if nobody can know yet.
    async fn read(&self, read: &Read) -> Result<Answer>;
}

/// What a reconciler sees of the world.
///
/// Every read is recorded, found or not: the runtime watches exactly what was read, and calls the
/// reconciler again when it changes. Reads answer from a cache that is never older than the
/// runtime's own last write.
#[derive(Clone)]
pub struct Cluster {
    source: Arc<dyn Source>,
    namespace: Arc<str>,
    reads: Arc<Mutex<ReadSet>>,
}

impl Cluster {
    /// A view through `source` that looks into `namespace` unless told otherwise.
    pub fn new(source: Arc<dyn Source>, namespace: impl Into<Arc<str>>) -> Self {
        Self { source, namespace: namespace.into(), reads: Arc::default() }
    }

    /// The same view of another namespace. What is read through it is recorded in the same place.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<Arc<str>>) -> Self {
        Self { source: self.source.clone(), namespace: namespace.into(), reads: self.reads.clone() }
    }

    /// The object of this name, in the view's namespace if the kind has any. `None` is an answer
    /// like any other: when somebody creates the object, the reconciler is called again.
    pub async fn get<T: Resource>(&self, name: &str) -> Result<Option<T>> {
        match self.get_object(&Kind::of::<T>(), name).await? {
            Some(object) => object.parse().map(Some),
            None => Ok(None),
        }
    }

    /// The object of a kind that is known only at run time.
    pub async fn get_object(&self, kind: &Kind, name: &str) -> Result<Option<Object>> {
        let namespace = if kind.namespaced { self.namespace.clone() } else { "".into() };
        match self.read(Read::Get { kind: kind.gvk.clone(), namespace, name: name.into() }).await? {
            Answer::Object(object) => Ok(object),
            other => Err(unexpected(&other)),
        }
    }

    /// The objects of a kind in the view's namespace that match a label selector in query form
    /// (`app=web,tier!=cache`; empty matches all), sorted by name.
    pub async fn list<T: Resource>(&self, selector: &str) -> Result<Vec<T>> {
        let kind = Kind::of::<T>();
        let namespace = kind.namespaced.then(|| self.namespace.clone());
        self.list_objects(&kind.gvk, namespace, selector).await?.iter().map(Object::parse).collect()
    }

    /// As [`list`](Self::list), in all namespaces.
    pub async fn list_all<T: Resource>(&self, selector: &str) -> Result<Vec<T>> {
        self.list_objects(&GroupVersionKind::of::<T>(), None, selector)
            .await?
            .iter()
            .map(Object::parse)
            .collect()
    }

    async fn list_objects(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<Arc<str>>,
        selector: &str,
    ) -> Result<Vec<Object>> {
        match self.read(Read::List { kind: kind.clone(), namespace, selector: selector.into() }).await? {
            Answer::Objects(objects) => Ok(objects),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether an object has existed for at least `age`. Time is a read like any other: the
    /// reconciler is called again when the answer turns true. False for an object that no server
    /// has stored yet.
    pub async fn older_than<T: Resource>(&self, object: &T, age: Duration) -> Result<bool> {
        let object = Object::from_resource(object)?;
        if object.created().is_empty() {
            return Ok(false);
        }
        let read = Read::OlderThan { object: object.reference(), created: object.created().into(), age };
        match self.read(read).await? {
            Answer::Flag(flag) => Ok(flag),
            other => Err(unexpected(&other)),
        }
    }

    /// How a kind is served, if it is; an empty version asks for the preferred one.
    pub async fn rest_mapping(&self, group: &str, version: &str, kind: &str) -> Result<Option<Kind>> {
        let read = Read::Mapping { group: group.into(), version: version.into(), kind: kind.into() };
        match self.read(read).await? {
            Answer::Kind(kind) => Ok(kind),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes any read. The typed methods above are what reconcilers use.
    pub async fn read(&self, read: Read) -> Result<Answer> {
        let answer = self.source.read(&read).await?;
        self.recorder().record(read, answer.seen());
        Ok(answer)
    }

    /// What has been read so far.
    pub fn reads(&self) -> ReadSet {
        self.recorder().clone()
    }

    fn recorder(&self) -> std::sync::MutexGuard<'_, ReadSet> {
        // A set of reads is whole after every step, so a panic elsewhere cannot have broken it.
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.namespace)
            .field("reads", &self.recorder().len())
            .finish()
    }
}

fn unexpected(answer: &Answer) -> Error {
    Error::terminal(format!("the source of reads answered another question: {answer:?}"))
}
