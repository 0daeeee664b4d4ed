//! Kinds: how an API server names and serves a type.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Error, Resource, Scoped};

/// A kind without its version: what identifies the type of an object for good.
///
/// Printed as `Kind.group`, the core group without a dot.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The kind, as in manifests.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// From its two parts.
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Whether this is the kind of that group.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.group == group && &*self.kind == kind
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

impl fmt::Debug for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GroupKind {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        let (kind, group) = s.split_once('.').unwrap_or((s, ""));
        if kind.is_empty() {
            return Err(Error::invalid(format!("kind {s:?}"), "is empty; write Kind or Kind.group"));
        }
        Ok(Self::new(group, kind))
    }
}

/// A kind in one version, as manifests name it (`apiVersion` and `kind`).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
}

impl GroupVersionKind {
    /// From its three parts.
    pub fn new(group: impl Into<Arc<str>>, version: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// From `apiVersion` and `kind` as they stand in a manifest.
    pub fn from_manifest(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// What a type is called.
    pub fn of<T: Resource>() -> Self {
        Self::new(&*T::group(&()), &*T::version(&()), &*T::kind(&()))
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

impl fmt::Debug for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A kind as a server serves it: its name, its path and its scope.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// What manifests call it.
    pub gvk: GroupVersionKind,
    /// What paths call it (`deployments`).
    pub plural: Arc<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The kind of a type.
    pub fn of<T: Resource>() -> Self {
        Self {
            gvk: GroupVersionKind::of::<T>(),
            plural: T::plural(&()).as_ref().into(),
            namespaced: <T::Scope as Scoped>::NAMESPACED,
        }
    }

    /// Without version, path and scope.
    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.gvk, f)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.gvk, self.plural)
    }
}
