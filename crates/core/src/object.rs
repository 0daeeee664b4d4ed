//! An object as the world has it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::owner::{ANNOTATION_NAMESPACE, ANNOTATION_RELEASE, ReleaseId};
use crate::{Error, GroupKind, GroupVersionKind, ObjectRef, Resource};

/// An object that was observed: immutable, cheap to clone, kept as compact as its JSON.
///
/// Use [`Manifest`](crate::Manifest) for what *should* exist.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    json: Box<[u8]>,
    api_version: Box<str>,
    kind: Box<str>,
    namespace: Arc<str>,
    name: Arc<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    generation: i64,
    created: Box<str>,
    deleting: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
    owners: Box<[Box<str>]>,
    release: Option<ReleaseId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: String,
    kind: String,
    metadata: HeadMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    uid: Option<String>,
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    owner_references: Option<Vec<HeadOwner>>,
}

/// What is read of the metadata only now and then.
#[derive(Deserialize)]
struct Meta {
    metadata: MetaPart,
}

#[derive(Deserialize)]
struct MetaPart {
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct HeadOwner {
    uid: String,
}

impl Object {
    /// Parses the JSON of one object. It must have `apiVersion`, `kind` and `metadata.name`.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        let head: Head = serde_json::from_slice(json)
            .map_err(|e| Error::invalid("object", format!("is not a Kubernetes object: {e}")))?;
        let meta = head.metadata;
        let release = meta.annotations.and_then(|mut a| {
            Some(ReleaseId {
                namespace: a.remove(ANNOTATION_NAMESPACE)?.into(),
                name: a.remove(ANNOTATION_RELEASE)?.into(),
            })
        });
        Ok(Self(Arc::new(Inner {
            json: json.into(),
            api_version: head.api_version.into(),
            kind: head.kind.into(),
            namespace: meta.namespace.unwrap_or_default().into(),
            name: meta.name.into(),
            uid: meta.uid.unwrap_or_default().into(),
            resource_version: meta.resource_version.unwrap_or_default().into(),
            generation: meta.generation.unwrap_or_default(),
            created: meta.creation_timestamp.unwrap_or_default().into(),
            deleting: meta.deletion_timestamp.is_some(),
            labels: meta.labels.unwrap_or_default().into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
            owners: meta.owner_references.unwrap_or_default().into_iter().map(|o| o.uid.into()).collect(),
            release,
        })))
    }

    /// From a parsed object.
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        Self::from_json(&serde_json::to_vec(value)?)
    }

    /// From a typed one.
    pub fn from_resource<T: Resource>(resource: &T) -> Result<Self, Error> {
        let mut value = serde_json::to_value(resource)?;
        crate::manifest::set_type::<T>(&mut value);
        Self::from_value(&value)
    }

    /// The object as the given type.
    pub fn parse<T: Resource>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0.json).map_err(|e| Error::invalid(self.reference(), e))
    }

    /// The object as a tree.
    pub fn to_value(&self) -> Value {
        // The bytes were parsed once before they came here.
        serde_json::from_slice(&self.0.json).unwrap_or(Value::Null)
    }

    /// The `status`; empty if there is none. Cheaper than the whole tree.
    pub fn status(&self) -> Map<String, Value> {
        #[derive(Deserialize)]
        struct Part {
            #[serde(default)]
            status: Option<Map<String, Value>>,
        }
        self.part::<Part>().and_then(|part| part.status).unwrap_or_default()
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.mentions(key).then(|| self.part::<Meta>()).flatten()?.metadata.annotations?.remove(key)
    }

    /// The finalizers.
    pub fn finalizers(&self) -> Vec<String> {
        let found = self.mentions("finalizers").then(|| self.part::<Meta>()).flatten();
        found.and_then(|part| part.metadata.finalizers).unwrap_or_default()
    }

    fn part<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        serde_json::from_slice(&self.0.json).ok()
    }

    /// Whether a word is anywhere in it at all. Most objects do not have most things, and looking
    /// for a word is many times faster than parsing. A slash is the only character of such words
    /// that JSON may write in two ways.
    fn mentions(&self, word: &str) -> bool {
        std::str::from_utf8(&self.0.json).is_ok_and(|json| json.contains(word) || json.contains("\\/"))
    }

    /// The JSON it was made from.
    pub fn json(&self) -> &[u8] {
        &self.0.json
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        &self.0.api_version
    }

    /// `apiVersion` and `kind`.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::from_manifest(&self.0.api_version, &self.0.kind)
    }

    /// Kind and group.
    pub fn group_kind(&self) -> GroupKind {
        self.gvk().group_kind()
    }

    /// Which object this is.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { kind: self.group_kind(), namespace: self.0.namespace.clone(), name: self.0.name.clone() }
    }

    /// `metadata.namespace`; empty for objects of the cluster.
    pub fn namespace(&self) -> &Arc<str> {
        &self.0.namespace
    }

    /// `metadata.name`.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// `metadata.uid`; empty if the server gave none.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// `metadata.resourceVersion`; empty if the server gave none.
    pub fn resource_version(&self) -> &str {
        &self.0.resource_version
    }

    /// `metadata.generation`, 0 where there is none.
    pub fn generation(&self) -> i64 {
        self.0.generation
    }

    /// `metadata.creationTimestamp` as RFC 3339 text.
    pub fn created(&self) -> &str {
        &self.0.created
    }

    /// Whether deletion was asked for and finalizers hold it.
    pub fn is_deleting(&self) -> bool {
        self.0.deleting
    }

    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0
            .labels
            .binary_search_by(|(k, _)| (**k).cmp(key))
            .ok()
            .and_then(|i| self.0.labels.get(i))
            .map(|(_, v)| &**v)
    }

    /// All labels, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.labels.iter().map(|(k, v)| (&**k, &**v))
    }

    /// The uids of its owner references.
    pub fn owner_uids(&self) -> impl Iterator<Item = &str> {
        self.0.owners.iter().map(|o| &**o)
    }

    /// The release it is marked to belong to.
    pub fn release(&self) -> Option<&ReleaseId> {
        self.0.release.as_ref()
    }

    /// About how many bytes of memory it holds.
    pub fn memory(&self) -> usize {
        size_of::<Inner>()
            + self.0.json.len()
            + self.0.labels.iter().map(|(k, v)| 32 + k.len() + v.len()).sum::<usize>()
            + self.0.owners.iter().map(|o| 16 + o.len()).sum::<usize>()
            + 160
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.json == other.0.json
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the content: it may be a Secret.
        write!(f, "{}@{}", self.reference(), self.0.resource_version)
    }
}
