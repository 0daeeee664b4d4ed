//! What a backend implements: a place where objects live.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use horchestra_core::{GroupVersionKind, Kind, Manifest, Object};
use serde_json::{Map, Value};

use crate::Note;

/// Which objects of a kind are meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All of them.
    All,
    /// Those of one namespace.
    Namespace(std::sync::Arc<str>),
    /// One by its name; the namespace is empty for kinds of the cluster.
    Name(std::sync::Arc<str>, std::sync::Arc<str>),
}

impl Scope {
    /// Whether an object of the kind is within.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(n) => **n == *namespace,
            Self::Name(ns, n) => **ns == *namespace && **n == *name,
        }
    }

    /// Whether everything in `other` is in this one too.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Namespace(a), Self::Namespace(b) | Self::Name(b, _)) => a == b,
            (a, b) => a == b,
        }
    }
}

/// A version of the whole world as a target counts it: `resourceVersion` of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Revision(pub String);

/// Objects as they were at one revision.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Object>,
    /// When.
    pub revision: Revision,
}

/// Something that happened, in the order in which it happened.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// An object was created or changed, or started to match.
    Applied(Object),
    /// An object is gone; this is its last state.
    Deleted(Object),
    /// Nothing new up to this revision.
    Bookmark(Revision),
}

/// A running watch. It ends with an error or without; then it is resumed from the last revision
/// seen, and after [`TargetError::Gone`] by listing again.
pub type WatchStream = BoxStream<'static, Result<WatchEvent, TargetError>>;

/// How something is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The field manager.
    pub manager: String,
    /// Whether fields of other managers are taken over; without it they are conflicts.
    pub force: bool,
    /// Check everything, store nothing.
    pub dry_run: bool,
}

impl ApplyOptions {
    /// Applies as this manager, taking over fields: what a controller does.
    pub fn force(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: true, dry_run: false }
    }
}

/// What happens to the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They are collected afterwards.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How something is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Only this incarnation.
    pub uid: Option<String>,
    /// What happens to what it owns.
    pub propagation: Propagation,
    /// Check everything, delete nothing.
    pub dry_run: bool,
}

/// A place where objects live: an API server, a node, an external system.
///
/// Every method is idempotent or protected by a precondition, so that a caller that got no answer
/// may ask again. Objects that come back are the stored ones, with their new resource version.
#[async_trait]
pub trait Target: Send + Sync + 'static {
    /// How a kind is served; none if it is not. An empty version asks for the preferred one.
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError>;

    /// One object; none if it does not exist.
    async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Object>, TargetError>;

    /// All objects in a scope at one revision.
    async fn list(&self, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError>;

    /// Everything that happens in a scope after a revision.
    async fn watch(&self, kind: &Kind, scope: &Scope, from: &Revision) -> Result<WatchStream, TargetError>;

    /// Server-side apply: creates the object or changes it to have these fields.
    async fn apply(
        &self,
        kind: &Kind,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Object, TargetError>;

    /// Replaces the status of an object as the given manager; `conditions` that it has are all
    /// there are. Fails with [`TargetError::Conflict`] if the object is not at `seen` any more.
    async fn set_status(
        &self,
        seen: &Object,
        kind: &Kind,
        status: Map<String, Value>,
        manager: &str,
    ) -> Result<Object, TargetError>;

    /// Asks for the deletion of an object. Not an error if it is gone already.
    async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), TargetError>;

    /// Records an event about an object. May be dropped where there is no place for it.
    async fn note(&self, about: &Object, note: Note) -> Result<(), TargetError>;
}

/// Why a target did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It does not exist (anymore).
    #[error("{0} not found")]
    NotFound(String),
    /// It exists already, is at another version, or fields of it belong to somebody else.
    #[error("{0}")]
    Conflict(String),
    /// The target refuses it as it is.
    #[error("{0}")]
    Invalid(String),
    /// The caller may not.
    #[error("{0}")]
    Forbidden(String),
    /// The revision is not kept any more: list again.
    #[error("revision is too old: {0}; list again")]
    Gone(String),
    /// The target does not answer, or asks to come back later.
    #[error("{message}")]
    Unavailable {
        /// What it said.
        message: String,
        /// After how long to try again, if it said so.
        retry_after: Option<Duration>,
    },
}

impl TargetError {
    /// As the error of a reconciler.
    pub fn into_error(self, doing: impl fmt::Display) -> horchestra_core::Error {
        use horchestra_core::Error;
        let text = format!("{doing}: {self}");
        match self {
            Self::Conflict(_) => Error::Conflict(text),
            Self::Invalid(_) | Self::Forbidden(_) => Error::Terminal(text),
            Self::NotFound(_) | Self::Gone(_) | Self::Unavailable { .. } => Error::Transient(text),
        }
    }
}
