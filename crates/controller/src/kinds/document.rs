//! The OpenAPI v3 documents, one for each group and version, made on demand.
//!
//! `kubectl explain`, `kubectl apply`'s choice of server-side validation and client libraries read them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::definitions;
use super::kind::{Kind, KindVersion, SchemaSource};
use super::registry::Snapshot;

const REFERENCE: &str = "#/components/schemas/";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Path of the document of a group and version under `/openapi/v3/`.
pub(crate) fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v3`: where the documents are. `hash` lets clients cache them.
pub(crate) fn index(kinds: &Snapshot) -> Value {
    let mut paths = Map::new();
    for kind in kinds.kinds() {
        for version in kind.versions.iter().filter(|v| v.served) {
            let path = path(&kind.group, &version.name);
            if !paths.contains_key(&path) {
                let hash = hash(kinds, &kind.group, &version.name);
                paths.insert(
                    path.clone(),
                    json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
                );
            }
        }
    }
    json!({"paths": paths})
}

/// Changes whenever the document does.
pub(crate) fn hash(kinds: &Snapshot, group: &str, version: &str) -> String {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    for (kind, version) in members(kinds, group, version) {
        hasher.update(kind.plural.as_bytes());
        hasher.update(format!("{:?}{}{:?}", kind.scope, version.status, version.scale));
        match &version.schema {
            SchemaSource::Definition { name, .. } => hasher.update(name.as_bytes()),
            SchemaSource::Own { document, .. } => hasher.update(document.to_string().as_bytes()),
        }
    }
    hex::encode_upper(hasher.finalize())
}

fn members<'a>(
    kinds: &'a Snapshot,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Kind, &'a KindVersion)> {
    kinds
        .kinds()
        .iter()
        .filter(move |k| k.group == group)
        .filter_map(move |k| Some((k.as_ref(), k.versions.iter().find(|v| v.served && v.name == version)?)))
}

/// The document of a group and version, or `None` when no kind is in it.
pub(crate) fn document(kinds: &Snapshot, group: &str, version: &str) -> Option<Value> {
    let mut schemas = Map::new();
    let mut wanted: Vec<String> = [STATUS, DELETE_OPTIONS, PATCH, LIST_META].map(str::to_owned).into();
    let mut paths = Map::new();
    let mut any = false;
    for (kind, version) in members(kinds, group, version) {
        any = true;
        let name = match &version.schema {
            SchemaSource::Definition { name, .. } => (*name).to_owned(),
            SchemaSource::Own { document, .. } => {
                let name = own_name(&kind.group, &version.name, &kind.kind);
                references(document, &mut wanted);
                schemas.insert(name.clone(), document.as_ref().clone());
                schemas.insert(format!("{name}List"), list_schema(kind, version, &name));
                name
            }
        };
        wanted.push(name.clone());
        wanted.push(format!("{name}List"));
        add_paths(kind, version, &name, &mut paths);
    }
    if !any {
        return None;
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) || schemas.contains_key(&name) {
            continue;
        }
        if let Some(schema) = definitions::all().get(&name) {
            references(schema, &mut wanted);
            schemas.insert(name, schema.clone());
        }
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": crate::VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `io.example.v1.Thing` for the kind Thing of `example.io/v1`, as Kubernetes names the schemas of definitions.
pub(super) fn own_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.push(version);
    parts.push(kind);
    parts.join(".")
}

fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) =
                map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(REFERENCE))
            {
                out.push(name.to_owned());
            }
            map.values().for_each(|v| references(v, out));
        }
        Value::Array(list) => list.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

fn list_schema(kind: &Kind, version: &KindVersion, item: &str) -> Value {
    json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [reference(LIST_META)]},
            "items": {"type": "array", "items": {"allOf": [reference(item)]}},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": version.name, "kind": kind.list_kind}],
    })
}

fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}

fn write_parameters() -> Vec<Value> {
    vec![
        query(
            "dryRun",
            "string",
            "When present, indicates that modifications should not be persisted. Valid values are: All",
        ),
        query(
            "fieldManager",
            "string",
            "fieldManager is a name associated with the actor or entity that is making these changes.",
        ),
        query(
            "fieldValidation",
            "string",
            "fieldValidation instructs the server on how to handle objects in the request containing unknown or duplicate fields. Valid values are: Ignore, Warn, Strict.",
        ),
    ]
}

fn list_parameters() -> Vec<Value> {
    let mut out: Vec<Value> = [
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("timeoutSeconds", "integer"),
    ]
    .map(|(name, kind)| query(name, kind, ""))
    .into();
    for name in ["allowWatchBookmarks", "sendInitialEvents", "watch"] {
        out.push(query(name, "boolean", ""));
    }
    out
}

fn operation(
    kind: &Kind,
    version: &KindVersion,
    action: &str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: &str,
) -> Value {
    let name = format!(
        "{action}{}{}{}{}",
        camel(&kind.group),
        camel(&version.name),
        if kind.namespaced() { "Namespaced" } else { "" },
        kind.kind
    );
    let mut out = json!({
        "operationId": name,
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference(answer)}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": version.name, "kind": kind.kind},
    });
    if let Some(body) = body {
        out["requestBody"] = json!({"required": true, "content": body});
    }
    out
}

fn camel(text: &str) -> String {
    text.split(['.', '-'])
        .map(|part| part.split_at_checked(1).map_or(String::new(), |(a, b)| a.to_uppercase() + b))
        .collect()
}

fn add_paths(kind: &Kind, version: &KindVersion, schema: &str, paths: &mut Map<String, Value>) {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let everywhere = format!("{root}/{}/{}", version.name, kind.plural);
    let collection = if kind.namespaced() {
        format!("{root}/{}/namespaces/{{namespace}}/{}", version.name, kind.plural)
    } else {
        everywhere.clone()
    };
    let list = format!("{schema}List");
    let json_body = |name: &str| json!({"application/json": {"schema": reference(name)}});
    let patch_body = || {
        let mut kinds = vec![
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ];
        if kind.built_in() {
            kinds.push("application/strategic-merge-patch+json");
        }
        let map: Map<String, Value> =
            kinds.into_iter().map(|k| (k.to_owned(), json!({"schema": reference(PATCH)}))).collect();
        Value::Object(map)
    };
    let patch_parameters = || {
        let mut parameters = write_parameters();
        parameters.push(query("force", "boolean", "Force is going to \"force\" Apply requests."));
        parameters
    };
    let shared = |item: bool| {
        let mut out = Vec::new();
        let path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
        if item {
            out.push(path("name"));
        }
        if kind.namespaced() {
            out.push(path("namespace"));
        }
        out.push(query("pretty", "string", ""));
        out
    };
    paths.insert(
        collection.clone(),
        json!({
            "get": operation(kind, version, "list", list_parameters(), None, &list),
            "post": operation(kind, version, "post", write_parameters(), Some(json_body(schema)), schema),
            "delete": operation(kind, version, "deletecollection", list_parameters(), Some(json_body(DELETE_OPTIONS)), STATUS),
            "parameters": shared(false),
        }),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation(kind, version, "get", vec![], None, schema),
            "put": operation(kind, version, "put", write_parameters(), Some(json_body(schema)), schema),
            "patch": operation(kind, version, "patch", patch_parameters(), Some(patch_body()), schema),
            "delete": operation(kind, version, "delete", vec![], Some(json_body(DELETE_OPTIONS)), STATUS),
            "parameters": shared(true),
        }),
    );
    if kind.namespaced() {
        paths.insert(
            everywhere,
            json!({"get": operation(kind, version, "list", list_parameters(), None, &list)}),
        );
    }
    if version.status {
        paths.insert(
            format!("{collection}/{{name}}/status"),
            json!({
                "get": operation(kind, version, "get", vec![], None, schema),
                "put": operation(kind, version, "put", write_parameters(), Some(json_body(schema)), schema),
                "patch": operation(kind, version, "patch", patch_parameters(), Some(patch_body()), schema),
                "parameters": shared(true),
            }),
        );
    }
}
