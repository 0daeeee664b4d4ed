//! Reads: what a reconciler asked of the world, and what it saw.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{GroupVersionKind, Kind, Object, ObjectRef};

/// One question to the world. Equal questions are one read.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Read {
    /// One object by name.
    Get {
        /// Its kind and the version it is wanted in.
        kind: GroupVersionKind,
        /// Its namespace; ignored for kinds of the cluster.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// All objects of a kind that match.
    List {
        /// The kind and the version they are wanted in.
        kind: GroupVersionKind,
        /// The namespace; none means all of them.
        namespace: Option<Arc<str>>,
        /// A label selector in query form; empty matches everything.
        selector: Arc<str>,
    },
    /// Whether an object has existed for longer than a while.
    OlderThan {
        /// The object.
        object: ObjectRef,
        /// Its `metadata.creationTimestamp`.
        created: Arc<str>,
        /// How long.
        age: Duration,
    },
    /// How a kind is served.
    Mapping {
        /// The group; empty for the core group.
        group: Arc<str>,
        /// The version; empty for the preferred one.
        version: Arc<str>,
        /// The kind.
        kind: Arc<str>,
    },
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { kind, namespace, name } => write!(f, "{namespace}/{}:{name}", kind.group_kind()),
            Self::List { kind, namespace, selector } => {
                write!(f, "{}/{}", namespace.as_deref().unwrap_or("*"), kind.group_kind())?;
                if selector.is_empty() { Ok(()) } else { write!(f, "[{selector}]") }
            }
            Self::OlderThan { object, age, .. } => write!(f, "{object} older than {age:?}"),
            Self::Mapping { group, version, kind } => write!(f, "mapping of {kind} in {group}/{version}"),
        }
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The answer to a [`Read`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// To [`Read::Get`]; absence is an answer too.
    Object(Option<Object>),
    /// To [`Read::List`], sorted by namespace and name.
    Objects(Vec<Object>),
    /// To [`Read::OlderThan`].
    Flag(bool),
    /// To [`Read::Mapping`].
    Kind(Option<Kind>),
}

/// What a read saw, small enough to keep: enough to tell whether the world looks different now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seen {
    /// Nothing by that name.
    Absent,
    /// An object in this version.
    Version(Arc<str>),
    /// Objects in these versions.
    Versions(Arc<[(ObjectRef, Arc<str>)]>),
    /// Yes or no.
    Flag(bool),
    /// Whether the kind is served.
    Served(bool),
}

impl Answer {
    /// What it comes down to.
    pub fn seen(&self) -> Seen {
        match self {
            Self::Object(None) => Seen::Absent,
            Self::Object(Some(o)) => Seen::Version(o.resource_version().into()),
            Self::Objects(list) => {
                Seen::Versions(list.iter().map(|o| (o.reference(), o.resource_version().into())).collect())
            }
            Self::Flag(b) => Seen::Flag(*b),
            Self::Kind(k) => Seen::Served(k.is_some()),
        }
    }
}

/// Everything that one run read: what has to be watched for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadSet {
    reads: BTreeMap<Read, Seen>,
}

impl ReadSet {
    /// Adds a read. A read made twice in one run keeps what was seen first: a run that saw both
    /// states is run again because of the change in between.
    pub fn record(&mut self, read: Read, seen: Seen) {
        self.reads.entry(read).or_insert(seen);
    }

    /// All reads in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&Read, &Seen)> {
        self.reads.iter()
    }

    /// Whether something was read.
    pub fn contains(&self, read: &Read) -> bool {
        self.reads.contains_key(read)
    }

    /// How many different reads there were.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Everything that was looked for and not found.
    pub fn misses(&self) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(|(_, seen)| matches!(seen, Seen::Absent)).map(|(read, _)| read)
    }
}
