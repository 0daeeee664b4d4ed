//! Which object: its kind, its namespace and its name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Error, GroupKind};

/// Names one object, independent of the version it is read in.
///
/// Printed and parsed in Yoke's syntax, `namespace/Kind.group:name`; for a kind of the cluster the
/// namespace is empty: `/Namespace:team`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace; empty for objects of the cluster.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// From its parts.
    pub fn new(kind: GroupKind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.kind, self.name)
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectRef {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid(format!("reference {s:?}"), "is not namespace/Kind.group:name");
        let (namespace, rest) = s.split_once('/').ok_or_else(wrong)?;
        let (kind, name) = rest.split_once(':').ok_or_else(wrong)?;
        if name.is_empty() {
            return Err(wrong());
        }
        Ok(Self::new(kind.parse()?, namespace, name))
    }
}

impl serde::Serialize for ObjectRef {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ObjectRef {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}
