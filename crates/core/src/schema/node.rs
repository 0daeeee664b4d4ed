//! A schema as it is kept: compiled once, shared by reference, walked beside a value.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Number, Value};

use super::format::Format;
use super::pattern::Pattern;

/// The compiled schema of one version of a kind. A clone shares it.
///
/// Rules are those of structural schemas of `apiextensions.k8s.io/v1`. CEL rules (`x-kubernetes-validations`) are not
/// evaluated; [`Schema::not_enforced`] lists them, so that a server can say so.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(super) root: Arc<Node>,
    pub(super) not_enforced: Arc<[String]>,
    pub(super) plain_status: bool,
}

impl Schema {
    /// Rules of the schema that nobody checks, by path: `spec.x-kubernetes-validations`.
    #[must_use]
    pub fn not_enforced(&self) -> &[String] {
        &self.not_enforced
    }

    /// The same schema for a kind without a status subresource: `status` is then a field like any other, and owned by
    /// who applies it.
    #[must_use]
    pub fn without_status_subresource(mut self) -> Self {
        self.plain_status = true;
        self
    }

    /// What is known of any object: its metadata. Elsewhere lists are atomic and maps granular.
    pub(crate) fn untyped() -> &'static Self {
        static UNTYPED: OnceLock<Schema> = OnceLock::new();
        UNTYPED.get_or_init(|| {
            let mut root = Node { preserve: true, resource: true, ..Node::default() };
            super::meta::complete(&mut root);
            Self { root: Arc::new(root), not_enforced: Arc::new([]), plain_status: false }
        })
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) const fn has_plain_status(&self) -> bool {
        self.plain_status
    }
}

/// The JSON types that a value may have. None at all means any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    const NAMES: [&'static str; 6] = ["object", "array", "string", "integer", "number", "boolean"];
    pub(super) const INT_OR_STRING: Self = Self(0b1100);

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).map(|bit| Self(1 << bit))
    }

    pub(super) const fn is_any(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is(self, name: &str) -> bool {
        Self::named(name) == Some(self)
    }

    /// Whether lists, objects or anything may stand here.
    pub(super) const fn has_structure(self) -> bool {
        self.is_any() || self.0 & 0b11 != 0
    }

    pub(super) fn names(self) -> String {
        let named = Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        named.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
    }

    pub(super) fn allow(self, value: &Value) -> bool {
        if self.is_any() {
            return true;
        }
        let mask = match value {
            Value::Null => 0,
            Value::Object(_) => 1,
            Value::Array(_) => 2,
            Value::String(_) => 4,
            // A number without a fraction is an integer, however it is written.
            Value::Number(number) if is_integer(number) => 8 | 16,
            Value::Number(_) => 16,
            Value::Bool(_) => 32,
        };
        self.0 & mask != 0
    }
}

pub(super) fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// How the entries of a list are told apart: `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListKind {
    /// The list is one value.
    Atomic,
    /// Each scalar stands once.
    Set,
    /// Each entry is an object, told apart by these fields. Never empty.
    Map(Vec<Box<str>>),
}

/// What the fields of an object may be beside its `properties`.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    /// Nothing else.
    None,
    /// Anything.
    Any,
    /// Values that follow this.
    Node(Arc<Node>),
}

/// How a strategic merge patch treats a field: `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`. `retainKeys` needs no hint:
/// a patch says itself which keys it retains.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatchHints {
    /// Merge instead of replace.
    pub(crate) merge: bool,
    /// The field that tells list entries apart.
    pub(crate) merge_key: Option<Box<str>>,
}

/// One position of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) types: Types,
    pub(crate) nullable: bool,
    pub(crate) preserve: bool,
    /// The root, or an embedded resource: apiVersion, kind and metadata are always there.
    pub(crate) resource: bool,
    /// An embedded resource, which must say its type.
    pub(crate) embedded: bool,
    pub(crate) properties: BTreeMap<Box<str>, Arc<Node>>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) list: ListKind,
    pub(crate) atomic_map: bool,
    pub(crate) default: Option<Value>,
    pub(crate) rules: Option<Box<Rules>>,
    pub(crate) patch: Option<Box<PatchHints>>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            types: Types::default(),
            nullable: false,
            preserve: false,
            resource: false,
            embedded: false,
            properties: BTreeMap::new(),
            additional: Additional::None,
            items: None,
            list: ListKind::Atomic,
            atomic_map: false,
            default: None,
            rules: None,
            patch: None,
        }
    }
}

impl Node {
    /// The schema of a named field.
    pub(crate) fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).map(AsRef::as_ref)
    }

    /// The schema of a field, named or additional.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.property(name).or(match &self.additional {
            Additional::Node(node) => Some(node),
            Additional::None | Additional::Any => None,
        })
    }

    /// The schema of list entries.
    pub(crate) fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }
}

/// A bound of a number.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(super) limit: Number,
    pub(super) exclusive: bool,
}

/// Value validation: what is checked beside the type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(super) one_of_values: Vec<Value>,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<Number>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
    pub(super) min_items: Option<usize>,
    pub(super) max_items: Option<usize>,
    pub(super) unique_items: bool,
    pub(super) min_properties: Option<usize>,
    pub(super) max_properties: Option<usize>,
    pub(super) required: Vec<Box<str>>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Node>,
}
