//! A kind that the server serves, and its versions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use horchestra_core::schema::Schema;
use serde_json::Value;

use super::columns::Column;
use super::strategy::Strategy;
use crate::error::Subject;

/// Where objects of a kind live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}

/// Who defined a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The server itself, or the program it is embedded in.
    BuiltIn,
    /// A CustomResourceDefinition.
    Custom {
        /// Name of the definition.
        definition: String,
        /// The definition is being deleted: its instances can go, but none can be made.
        terminating: bool,
    },
}

/// The scale subresource: where its numbers are in the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// JSON path of the desired number, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// JSON path of the observed number, such as `.status.replicas`.
    pub status_replicas: String,
    /// JSON path of the selector in its string form, if the kind has one.
    pub selector: Option<String>,
}

/// Group and kind, without a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: String,
    /// Such as `Job`.
    pub kind: String,
}

/// A kind: its names, where it lives, how its objects are treated, and its versions.
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// Such as `Job`.
    pub kind: String,
    /// Such as `JobList`.
    pub list_kind: String,
    /// Such as `jobs`; also the name in URLs and in the store.
    pub plural: String,
    /// Such as `job`.
    pub singular: String,
    /// Such as `po`.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Namespaced or not.
    pub scope: Scope,
    /// Highest priority first; one of them is stored. Never empty.
    pub versions: Vec<KindVersion>,
    /// Who defined it.
    pub origin: Origin,
    /// `metadata.generation` is kept.
    pub generation: bool,
    /// Defaults, rules and what writes do to objects of the kind.
    pub strategy: Arc<dyn Strategy>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind")
            .field("group", &self.group)
            .field("kind", &self.kind)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// One version of a kind.
pub struct KindVersion {
    /// Such as `v1beta1`.
    pub name: String,
    /// Clients can use it.
    pub served: bool,
    /// Objects are stored in it.
    pub stored: bool,
    /// What clients that use it are told, if it is deprecated.
    pub deprecation: Option<String>,
    /// The schema of a whole object, `metadata` included.
    pub schema: SchemaSource,
    /// `status` is written through its own subresource only.
    pub status: bool,
    /// The scale subresource.
    pub scale: Option<Scale>,
    /// Columns of Tables, after the name.
    pub columns: Vec<Column>,
    /// Paths beyond `metadata.name` and `metadata.namespace` that field selectors may name.
    pub selectable: Vec<String>,
}

impl fmt::Debug for KindVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindVersion").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where the schema of a version comes from.
pub enum SchemaSource {
    /// From the embedded Kubernetes definitions, made on first use (a large schema costs milliseconds).
    Definition {
        /// Name of the definition.
        name: &'static str,
        /// Filled on first use.
        schema: OnceLock<Option<Arc<Schema>>>,
    },
    /// From a CustomResourceDefinition or an embedding program.
    Own {
        /// Compiled.
        schema: Arc<Schema>,
        /// As published under `/openapi/v3`.
        document: Arc<Value>,
    },
}

impl fmt::Debug for SchemaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition { name, .. } => f.debug_tuple("Definition").field(name).finish(),
            Self::Own { .. } => f.write_str("Own"),
        }
    }
}

impl SchemaSource {
    /// The definition `name` of the embedded document.
    #[must_use]
    pub fn definition(name: &'static str) -> Self {
        Self::Definition { name, schema: OnceLock::new() }
    }
}

impl KindVersion {
    /// The schema of a whole object. `None` only if the embedded document lacks the kind, which a test excludes.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        match &self.schema {
            SchemaSource::Own { schema, .. } => Some(schema),
            SchemaSource::Definition { name, schema } => {
                schema.get_or_init(|| super::definitions::compile(name).map(Arc::new)).as_deref()
            }
        }
    }
}

impl Kind {
    /// The version called `name`, if it is served.
    #[must_use]
    pub fn served(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version.served && version.name == name)
    }

    /// The version in which objects are stored.
    #[must_use]
    pub fn storage(&self) -> Option<&KindVersion> {
        self.versions.iter().find(|version| version.stored)
    }

    /// True for namespaced kinds.
    #[must_use]
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// True for kinds that the server or its embedder brings.
    #[must_use]
    pub fn built_in(&self) -> bool {
        self.origin == Origin::BuiltIn
    }

    /// `batch/v1`, or `v1` for the core group.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// Group and kind.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// What errors say they are about.
    #[must_use]
    pub fn subject(&self, name: &str) -> Subject {
        Subject {
            group: self.group.clone(),
            resource: self.plural.clone(),
            kind: self.kind.clone(),
            name: name.to_owned(),
        }
    }

    /// Key prefix of all objects, with a slash at the end.
    #[must_use]
    pub(crate) fn prefix(&self) -> String {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        format!("{ROOT}{group}/{}/", self.plural)
    }

    /// Key prefix of the objects of a namespace; of all objects for an empty one.
    #[must_use]
    pub(crate) fn namespace_prefix(&self, namespace: &str) -> String {
        if namespace.is_empty() { self.prefix() } else { format!("{}{namespace}/", self.prefix()) }
    }

    /// Key of one object.
    #[must_use]
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Arc<str> {
        format!("{}{name}", self.namespace_prefix(namespace)).into()
    }
}

/// Every object's key begins with this.
pub(crate) const ROOT: &str = "/registry/";

/// Group, resource, namespace (empty if none) and name of a key under [`ROOT`].
#[must_use]
pub(crate) fn parse_key(key: &str) -> Option<(&str, &str, &str, &str)> {
    let mut parts = key.strip_prefix(ROOT)?.split('/');
    let group = parts.next()?;
    let group = if group == "core" { "" } else { group };
    let (resource, first, second) = (parts.next()?, parts.next()?, parts.next());
    match (second, parts.next()) {
        (Some(name), None) => Some((group, resource, first, name)),
        (None, None) => Some((group, resource, "", first)),
        _ => None,
    }
}

/// A kind in one of its served versions: what requests are addressed to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    kind: Arc<Kind>,
    version: usize,
    api_version: Arc<str>,
}

impl Endpoint {
    pub(crate) fn new(kind: Arc<Kind>, version: usize) -> Option<Self> {
        let api_version = kind.api_version(&kind.versions.get(version)?.name).into();
        Some(Self { kind, version, api_version })
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &KindVersion {
        // `new` has looked the index up, and a Kind never changes.
        &self.kind.versions[self.version]
    }

    /// Such as `batch/v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_parse_back() {
        assert_eq!(parse_key("/registry/core/namespaces/a"), Some(("", "namespaces", "", "a")));
        assert_eq!(parse_key("/registry/batch/jobs/n/a.b"), Some(("batch", "jobs", "n", "a.b")));
        for bad in ["/registry/core", "/x", "/registry/a/b/c/d/e", ""] {
            assert_eq!(parse_key(bad), None, "{bad}");
        }
    }
}
