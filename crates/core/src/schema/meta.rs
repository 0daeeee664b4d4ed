//! What every object has, whatever its schema says.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::{Additional, ListKind, Node, Types};

fn string() -> Arc<Node> {
    Arc::new(Node { types: Types::named("string").unwrap_or_default(), ..Node::default() })
}

fn integer() -> Arc<Node> {
    Arc::new(Node { types: Types::named("integer").unwrap_or_default(), ..Node::default() })
}

fn object(node: Node) -> Arc<Node> {
    Arc::new(Node { types: Types::named("object").unwrap_or_default(), ..node })
}

fn list(list: ListKind, items: Arc<Node>) -> Arc<Node> {
    let types = Types::named("array").unwrap_or_default();
    Arc::new(Node { types, list, items: Some(items), ..Node::default() })
}

/// `ObjectMeta` of `meta/v1`, with the list types that server-side apply needs. Unknown fields are kept: what belongs
/// there is for the server to say.
fn object_meta() -> Node {
    let open = || object(Node { preserve: true, ..Node::default() });
    let strings = || object(Node { additional: Additional::Node(string()), ..Node::default() });
    let owner = object(Node { preserve: true, atomic_map: true, ..Node::default() });
    let mut owner_fields = BTreeMap::new();
    owner_fields.insert("uid".into(), string());
    let owner = Arc::new(Node { properties: owner_fields, ..(*owner).clone() });
    let mut properties: BTreeMap<Box<str>, Arc<Node>> = BTreeMap::new();
    for name in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
    ] {
        properties.insert(name.into(), string());
    }
    for name in ["generation", "deletionGracePeriodSeconds"] {
        properties.insert(name.into(), integer());
    }
    properties.insert("labels".into(), strings());
    properties.insert("annotations".into(), strings());
    properties.insert("finalizers".into(), list(ListKind::Set, string()));
    properties.insert("ownerReferences".into(), list(ListKind::Map(vec!["uid".into()]), owner));
    properties.insert("managedFields".into(), list(ListKind::Atomic, open()));
    Node { types: Types::named("object").unwrap_or_default(), preserve: true, properties, ..Node::default() }
}

/// Gives a resource its apiVersion, kind and metadata. An author may only narrow metadata, so what is not narrowed is
/// added; a schema that already has `labels` there is taken as it is.
pub(super) fn complete(node: &mut Node) {
    for name in ["apiVersion", "kind"] {
        node.properties.entry(name.into()).or_insert_with(string);
    }
    let whole = node.property("metadata").is_some_and(|metadata| metadata.property("labels").is_some());
    if whole {
        return;
    }
    let mut metadata = object_meta();
    if let Some(author) = node.properties.remove("metadata") {
        metadata.rules = author.rules.clone();
        for (name, narrowed) in &author.properties {
            metadata.properties.insert(name.clone(), Arc::clone(narrowed));
        }
    }
    node.properties.insert("metadata".into(), Arc::new(metadata));
}
