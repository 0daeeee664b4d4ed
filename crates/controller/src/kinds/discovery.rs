//! What the server says about its kinds: plain and aggregated discovery.
//!
//! Made once for each set of kinds; the order is fixed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::kind::{Kind, KindVersion};
use super::priority;

/// Verbs of a whole object.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of the subresources.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The finished answers.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// `/apis`
    pub(crate) groups: Bytes,
    /// `/apis`, aggregated.
    pub(crate) aggregated: Bytes,
    /// `/api`, aggregated.
    pub(crate) aggregated_core: Bytes,
    /// `/apis/<group>`
    pub(crate) group: HashMap<String, Bytes>,
    /// `/apis/<group>/<version>` and `/api/v1`, by `apiVersion`.
    pub(crate) resources: HashMap<String, Bytes>,
}

type Versions<'a> = Vec<(String, Vec<(&'a Arc<Kind>, &'a KindVersion)>)>;

impl Discovery {
    pub(crate) fn new(kinds: &[Arc<Kind>]) -> Self {
        let groups = by_group(kinds);
        let mut resources = HashMap::new();
        let mut group_documents = HashMap::new();
        let (mut plain, mut aggregated, mut core) = (Vec::new(), Vec::new(), Vec::new());
        for (group, versions) in &groups {
            for (version, kinds) in versions {
                let name = group_version(group, version);
                resources.insert(name.clone(), text(&resource_list(&name, kinds)));
            }
            let item = aggregate(group, versions);
            if group.is_empty() {
                core.push(item);
                continue;
            }
            aggregated.push(item);
            let document = api_group(group, versions);
            let mut alone = document.clone();
            alone["kind"] = json!("APIGroup");
            alone["apiVersion"] = json!("v1");
            group_documents.insert(group.clone(), text(&alone));
            plain.push(document);
        }
        Self {
            groups: text(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": plain})),
            aggregated: text(&group_discovery(aggregated)),
            aggregated_core: text(&group_discovery(core)),
            group: group_documents,
            resources,
        }
    }
}

/// Kinds by group and version, versions with the highest priority first.
fn by_group(kinds: &[Arc<Kind>]) -> BTreeMap<String, Versions<'_>> {
    let mut groups: BTreeMap<String, Versions<'_>> = BTreeMap::new();
    for kind in kinds {
        let versions = groups.entry(kind.group.clone()).or_default();
        for version in kind.versions.iter().filter(|v| v.served) {
            match versions.iter_mut().find(|(name, _)| *name == version.name) {
                Some((_, list)) => list.push((kind, version)),
                None => versions.push((version.name.clone(), vec![(kind, version)])),
            }
        }
    }
    groups.retain(|_, versions| !versions.is_empty());
    for versions in groups.values_mut() {
        versions.sort_by_key(|(name, _)| priority::of(name));
    }
    groups
}

fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn api_group(group: &str, versions: &Versions<'_>) -> Value {
    let list: Vec<Value> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": group_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "versions": list, "preferredVersion": list.first()})
}

fn resource_list(group_version: &str, kinds: &[(&Arc<Kind>, &KindVersion)]) -> Value {
    let mut resources = Vec::new();
    for (kind, version) in kinds {
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced(),
            "kind": kind.kind,
            "verbs": VERBS,
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resource["storageVersionHash"] = json!(storage_hash(kind));
        resources.push(resource);
        if version.status {
            resources.push(json!({
                "name": format!("{}/status", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced(),
                "kind": kind.kind,
                "verbs": SUBRESOURCE_VERBS,
            }));
        }
        if version.scale.is_some() {
            resources.push(json!({
                "name": format!("{}/scale", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced(),
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": SUBRESOURCE_VERBS,
            }));
        }
    }
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    })
}

/// Tells clients when the stored version of a kind changes. Opaque to them.
fn storage_hash(kind: &Kind) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let version = kind.storage().map_or("", |v| v.name.as_str());
    let digest = sha2::Sha256::digest(format!("{}/{version}/{}", kind.group, kind.kind));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

fn group_discovery(items: Vec<Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregate(group: &str, versions: &Versions<'_>) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, kinds)| {
            let resources: Vec<Value> = kinds.iter().map(|(kind, v)| aggregate_resource(kind, v)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let mut item = json!({"metadata": {"creationTimestamp": null}, "versions": versions});
    if !group.is_empty() {
        item["metadata"]["name"] = json!(group);
    }
    item
}

fn aggregate_resource(kind: &Kind, version: &KindVersion) -> Value {
    let response = json!({"group": kind.group, "version": version.name, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    let mut subresources = Vec::new();
    if version.scale.is_some() {
        let response = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        subresources
            .push(json!({"subresource": "scale", "responseKind": response, "verbs": SUBRESOURCE_VERBS}));
    }
    if version.status {
        subresources
            .push(json!({"subresource": "status", "responseKind": response, "verbs": SUBRESOURCE_VERBS}));
    }
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}
