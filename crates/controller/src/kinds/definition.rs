//! `apiextensions.k8s.io/v1` CustomResourceDefinition: its rules, and the kind it defines.

use std::sync::Arc;

use horchestra_core::field_error::FieldError;
use horchestra_core::schema::Schema;
use serde_json::{Map, Value, json};

use super::columns::{Cell, Column};
use super::definition_rules::validate;
use super::fields::{fill, get, items_mut, list, object_at, object_mut, text};
use super::jsonpath::JsonPath;
use super::kind::{Kind, KindVersion, Origin, Scale, SchemaSource, Scope};
use super::registry::Snapshot;
use super::strategy::{Plain, Strategy};

/// Group of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// Resource name of definitions.
pub(crate) const PLURAL: &str = "customresourcedefinitions";
/// Kind of definitions.
pub(crate) const KIND: &str = "CustomResourceDefinition";
/// Keeps a definition until its instances are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Rules of definitions. Accepting names needs the other kinds: [`accept`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition;

impl Strategy for Definition {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object_mut(object, &["spec"]) else { return };
        spec.remove("preserveUnknownFields").filter(|v| v != &json!(false)).map(|v| {
            // `true` is refused by validation: it is not possible in v1.
            spec.insert("preserveUnknownFields".to_owned(), v)
        });
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !kind.is_empty() {
                fill(names, "singular", kind.to_lowercase());
                fill(names, "listKind", format!("{kind}List"));
            }
        }
        let conversion = spec.entry("conversion").or_insert_with(|| json!({}));
        if let Some(conversion) = conversion.as_object_mut() {
            fill(conversion, "strategy", "None");
        }
        for version in items_mut(spec, "versions") {
            for field in ["served", "storage"] {
                version.entry(field).or_insert(Value::Bool(false));
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(metadata) = object_at(object, &["metadata"])
            && let Some(list) = metadata.entry("finalizers").or_insert_with(|| json!([])).as_array_mut()
            && !list.iter().any(|f| f == FINALIZER)
        {
            list.push(json!(FINALIZER));
        }
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate(new, &mut errors);
        if let Some(old) = old {
            for path in [
                &["spec", "group"][..],
                &["spec", "scope"],
                &["spec", "names", "plural"],
                &["spec", "names", "kind"],
            ] {
                let (before, after) = (get(old, path), get(new, path));
                if before != after {
                    let value = after.cloned().unwrap_or(Value::Null);
                    errors.push(FieldError::invalid(path.join("."), &value, "field is immutable"));
                }
            }
        }
        errors
    }
}

/// Sets the status of a definition: accepted names, stored versions, and the conditions that say whether its kind is served.
///
/// `now` is RFC 3339. Names are accepted when no other kind of the group has them.
pub(crate) fn accept(object: &mut Value, kinds: &Snapshot, now: &str) {
    let own = text(object, &["metadata", "name"]).to_owned();
    let group = text(object, &["spec", "group"]).to_owned();
    let names = get(object, &["spec", "names"]).cloned().unwrap_or(json!({}));
    let conflict = kinds
        .kinds()
        .iter()
        .filter(|kind| kind.group == group)
        .filter(|kind| !matches!(&kind.origin, Origin::Custom { definition, .. } if *definition == own))
        .find_map(|kind| clash(kind, &names));
    let deleted = get(object, &["metadata", "deletionTimestamp"]).is_some();
    let stored: Option<String> = list(object, &["spec", "versions"])
        .iter()
        .find(|v| get(v, &["storage"]) == Some(&Value::Bool(true)))
        .map(|v| text(v, &["name"]).to_owned());
    let Some(status) = object_at(object, &["status"]) else { return };
    match conflict {
        None => {
            condition(status, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
            condition(
                status,
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
                now,
            );
            status.insert("acceptedNames".to_owned(), names);
        }
        Some(message) => {
            condition(status, "NamesAccepted", false, "NameConflict", &message, now);
            condition(status, "Established", false, "NotAccepted", "not all names are accepted", now);
            status.entry("acceptedNames").or_insert_with(|| json!({"plural": "", "kind": ""}));
        }
    }
    if deleted {
        condition(
            status,
            "Terminating",
            true,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
            now,
        );
    }
    if let (Some(stored), Some(list)) =
        (stored, status.entry("storedVersions").or_insert_with(|| json!([])).as_array_mut())
        && !list.iter().any(|v| *v == stored.as_str())
    {
        list.push(json!(stored));
    }
}

fn clash(kind: &Kind, names: &Value) -> Option<String> {
    let taken = |name: &str| {
        name == kind.plural || name == kind.singular || kind.short_names.iter().any(|s| s == name)
    };
    let wanted = [text(names, &["plural"]), text(names, &["singular"])]
        .into_iter()
        .chain(list(names, &["shortNames"]).iter().filter_map(Value::as_str));
    if let Some(name) = wanted.into_iter().find(|name| !name.is_empty() && taken(name)) {
        return Some(format!("{name:?} is already in use"));
    }
    let kinds = [text(names, &["kind"]), text(names, &["listKind"])];
    kinds
        .into_iter()
        .find(|name| !name.is_empty() && (*name == kind.kind || *name == kind.list_kind))
        .map(|name| format!("{name:?} is already in use"))
}

fn condition(
    status: &mut Map<String, Value>,
    kind: &str,
    value: bool,
    reason: &str,
    message: &str,
    now: &str,
) {
    let Some(list) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut() else { return };
    let value = if value { "True" } else { "False" };
    let mut new = json!({"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now});
    if let Some(old) = list.iter_mut().find(|c| text(c, &["type"]) == kind) {
        if text(old, &["status"]) == value {
            new["lastTransitionTime"] = old.get("lastTransitionTime").cloned().unwrap_or_else(|| json!(now));
        }
        *old = new;
    } else {
        list.push(new);
    }
}

/// True when the kind that a stored definition describes is served.
pub(crate) fn established(object: &Value) -> bool {
    list(object, &["status", "conditions"])
        .iter()
        .any(|c| text(c, &["type"]) == "Established" && text(c, &["status"]) == "True")
}

/// The kind that a valid definition describes. Errors name every field that is wrong.
pub(crate) fn kind(object: &Value) -> Result<Kind, Vec<FieldError>> {
    let mut object = object.clone();
    Definition.default(&mut object);
    let mut errors = Vec::new();
    validate(&object, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let name = |field: &str| text(&object, &["spec", "names", field]).to_owned();
    let strings = |field: &str| -> Vec<String> {
        list(&object, &["spec", "names", field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = text(&object, &["spec", "group"]).to_owned();
    let mut versions = Vec::new();
    for definition in list(&object, &["spec", "versions"]) {
        versions.push(version(definition, &group, &name("kind"))?);
    }
    versions.sort_by_key(|v| super::priority::of(&v.name));
    Ok(Kind {
        group,
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: strings("shortNames"),
        categories: strings("categories"),
        scope: if text(&object, &["spec", "scope"]) == "Cluster" {
            Scope::Cluster
        } else {
            Scope::Namespaced
        },
        versions,
        origin: Origin::Custom {
            definition: text(&object, &["metadata", "name"]).to_owned(),
            terminating: get(&object, &["metadata", "deletionTimestamp"]).is_some(),
        },
        generation: true,
        strategy: Arc::new(Plain),
    })
}

fn version(definition: &Value, group: &str, kind: &str) -> Result<KindVersion, Vec<FieldError>> {
    let name = text(definition, &["name"]).to_owned();
    let schema =
        get(definition, &["schema", "openAPIV3Schema"]).cloned().unwrap_or(json!({"type": "object"}));
    let flag = |field: &str| get(definition, &[field]) == Some(&Value::Bool(true));
    let scale = get(definition, &["subresources", "scale"]).map(|scale| Scale {
        spec_replicas: text(scale, &["specReplicasPath"]).to_owned(),
        status_replicas: text(scale, &["statusReplicasPath"]).to_owned(),
        selector: Some(text(scale, &["labelSelectorPath"])).filter(|s| !s.is_empty()).map(str::to_owned),
    });
    let deprecation = flag("deprecated").then(|| {
        let warning = text(definition, &["deprecationWarning"]);
        if warning.is_empty() { format!("{group}/{name} {kind} is deprecated") } else { warning.to_owned() }
    });
    let selectable = list(definition, &["selectableFields"])
        .iter()
        .map(|field| text(field, &["jsonPath"]).trim_start_matches('.').to_owned())
        .filter(|path| !path.is_empty())
        .collect();
    let status = get(definition, &["subresources", "status"]).is_some();
    let compiled = Schema::parse(&complete(&schema))?;
    let compiled = if status { compiled } else { compiled.without_status_subresource() };
    Ok(KindVersion {
        served: flag("served"),
        stored: flag("storage"),
        deprecation,
        schema: SchemaSource::Own {
            schema: Arc::new(compiled),
            document: Arc::new(document(schema, group, &name, kind)),
        },
        status,
        scale,
        columns: columns(definition),
        selectable,
        name,
    })
}

fn columns(definition: &Value) -> Vec<Column> {
    let mut out = vec![super::builtin::name_column()];
    let own = list(definition, &["additionalPrinterColumns"]);
    if own.is_empty() {
        out.push(Column::age());
        return out;
    }
    for column in own {
        let Ok(path) = JsonPath::parse(text(column, &["jsonPath"])) else { continue };
        out.push(Column {
            name: text(column, &["name"]).to_owned(),
            kind: text(column, &["type"]).to_owned(),
            format: text(column, &["format"]).to_owned(),
            description: text(column, &["description"]).to_owned(),
            priority: get(column, &["priority"]).and_then(Value::as_i64).unwrap_or(0),
            cell: Cell::Path(path),
        });
    }
    out
}

/// The author's schema with what every object has: type, kind and metadata.
fn complete(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let mut meta = super::definitions::inlined(super::definitions::OBJECT_META)
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let own = get(&schema, &["properties", "metadata", "properties"]).and_then(Value::as_object).cloned();
    // An author may narrow name and generateName.
    for (field, narrow) in own.into_iter().flatten() {
        if let (Some(to), Some(narrow)) = (object_mut(&mut meta, &["properties", &field]), narrow.as_object())
        {
            to.extend(narrow.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
    }
    if let Some(properties) = object_at(&mut schema, &["properties"]) {
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), meta);
    }
    schema
}

/// The author's schema as published.
fn document(mut schema: Value, group: &str, version: &str, kind: &str) -> Value {
    let described = |name: &str| {
        let meta = super::definitions::all().get("io.k8s.api.core.v1.ConfigMap");
        let text = meta.and_then(|m| m["properties"][name]["description"].as_str()).unwrap_or_default();
        json!({"type": "string", "description": text})
    };
    if let Some(properties) = object_at(&mut schema, &["properties"]) {
        properties.insert("apiVersion".to_owned(), described("apiVersion"));
        properties.insert("kind".to_owned(), described("kind"));
        properties.insert(
            "metadata".to_owned(),
            json!({
                "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
                "allOf": [{"$ref": format!("#/components/schemas/{}", super::definitions::OBJECT_META)}],
            }),
        );
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(
            "x-kubernetes-group-version-kind".to_owned(),
            json!([{"group": group, "version": version, "kind": kind}]),
        );
    }
    schema
}

impl Kind {
    /// A kind from a definition (the JSON of a CustomResourceDefinition) that the embedding program brings as one of its own.
    ///
    /// It is served from the start, cannot be changed or deleted by clients, and may have code of its own. Errors name
    /// every field of the definition that is wrong.
    pub fn from_definition(
        definition: &Value,
        strategy: Option<Arc<dyn Strategy>>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut kind = kind(definition)?;
        kind.origin = Origin::BuiltIn;
        if let Some(strategy) = strategy {
            kind.strategy = strategy;
        }
        Ok(kind)
    }
}
