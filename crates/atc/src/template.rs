//! From the template of an Airway to the definition that is applied.

use horchestra_api::Airway;
use horchestra_core::{GroupVersionKind, Kind};
use serde_json::{Map, Value, json};

use crate::AtcError;

fn wrong(path: &str, message: impl Into<String>) -> AtcError {
    AtcError::Template { path: format!("spec.template{path}"), message: message.into() }
}

/// The kind that an Airway defines, in its storage version.
pub fn instance_kind(airway: &Airway) -> Result<Kind, AtcError> {
    let template = &airway.spec.template;
    let text = |path: &str| match template.pointer(path).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(wrong(&path.replace('/', "."), "is missing")),
    };
    let (group, plural, kind) = (text("/group")?, text("/names/plural")?, text("/names/kind")?);
    let expected = format!("{plural}.{group}");
    let name = airway.metadata.name.as_deref().unwrap_or_default();
    if name != expected {
        return Err(AtcError::Template {
            path: "metadata.name".into(),
            message: format!("is {name:?}; an Airway is named as the definition it makes: {expected:?}"),
        });
    }
    let versions = template.get("versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let stored: Vec<&Value> =
        versions.iter().filter(|v| v.get("storage").and_then(Value::as_bool) == Some(true)).collect();
    let [stored] = stored.as_slice() else {
        return Err(wrong(
            ".versions",
            format!("must have exactly one version with storage: true, and has {}", stored.len()),
        ));
    };
    let version = stored.get("name").and_then(Value::as_str).unwrap_or_default();
    let namespaced = match text("/scope")? {
        "Namespaced" => true,
        "Cluster" => false,
        other => return Err(wrong(".scope", format!("is {other:?}; write Namespaced or Cluster"))),
    };
    Ok(Kind { gvk: GroupVersionKind::new(group, version, kind), plural: plural.into(), namespaced })
}

/// The CustomResourceDefinition that an Airway stands for: its template, with a status that can
/// hold conditions in every version.
pub fn definition(airway: &Airway) -> Result<Value, AtcError> {
    instance_kind(airway)?;
    let mut spec = airway.spec.template.clone();
    let versions =
        spec.get_mut("versions").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    for (index, version) in versions.iter_mut().enumerate() {
        let at = format!(".versions[{index}]");
        let version = version.as_object_mut().ok_or_else(|| wrong(&at, "is not an object"))?;
        with_status(version, &at)?;
    }
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": airway.metadata.name},
        "spec": spec,
    }))
}

fn with_status(version: &mut Map<String, Value>, at: &str) -> Result<(), AtcError> {
    let subresources = version.entry("subresources").or_insert_with(|| json!({}));
    if subresources.is_null() {
        *subresources = json!({});
    }
    let path = format!("{at}.subresources");
    subresources
        .as_object_mut()
        .ok_or_else(|| wrong(&path, "is not an object"))?
        .insert("status".into(), json!({}));

    let at = format!("{at}.schema.openAPIV3Schema");
    let not_object = || wrong(&at, "is not an object");
    let schema = version.entry("schema").or_insert_with(|| json!({"openAPIV3Schema": {"type": "object"}}));
    let schema = schema.as_object_mut().ok_or_else(not_object)?;
    let schema = schema.entry("openAPIV3Schema").or_insert_with(|| json!({"type": "object"}));
    let schema = schema.as_object_mut().ok_or_else(not_object)?;
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|r| r != "status");
        if required.is_empty() {
            schema.remove("required");
        }
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let properties = properties.as_object_mut().ok_or_else(not_object)?;
    let status = properties.entry("status").or_insert_with(|| json!({"type": "object"}));
    let kind = status.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind != "object" {
        return Err(wrong(
            &format!("{at}.properties.status"),
            format!("status must be an object but got type: {kind:?}"),
        ));
    }
    let status = status.as_object_mut().ok_or_else(not_object)?;
    let inner = status.entry("properties").or_insert_with(|| json!({}));
    let inner = inner.as_object_mut().ok_or_else(not_object)?;
    match inner.get("conditions") {
        None => drop(inner.insert("conditions".into(), conditions())),
        Some(given) if takes_conditions(given) => {}
        Some(_) => {
            return Err(wrong(
                &format!("{at}.properties.status.properties.conditions"),
                "conditions does not have expected schema: a list of objects with type, status, reason and message",
            ));
        }
    }
    Ok(())
}

fn takes_conditions(schema: &Value) -> bool {
    let items = schema.get("items").and_then(|i| i.get("properties"));
    let has =
        |field: &str| items.and_then(|p| p.get(field)).and_then(|f| f.get("type")) == Some(&json!("string"));
    let open = schema.pointer("/items/x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    schema.get("type") == Some(&json!("array"))
        && (open || ["type", "status", "reason", "message"].into_iter().all(has))
}

/// The schema of `metav1.Condition` lists, as controller-gen writes it.
fn conditions() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string", "maxLength": 1024, "minLength": 1},
                "message": {"type": "string", "maxLength": 32768},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn airway(versions: Value) -> Airway {
        serde_json::from_value(json!({
            "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": "backends.examples.com"},
            "spec": {"wasmUrls": {"flight": "x.wasm"}, "template": {"group": "examples.com", "scope": "Namespaced",
                "names": {"plural": "backends", "kind": "Backend"}, "versions": versions}},
        }))
        .unwrap()
    }

    #[test]
    fn every_version_gets_a_status_with_conditions_and_keeps_its_scale() {
        let made = definition(&airway(json!([
            {"name": "v1", "served": true, "storage": true, "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
             "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec", "status"], "properties": {"spec": {"type": "object"},
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}},
            {"name": "v2", "served": true, "storage": false},
        ])))
        .unwrap();
        let v1 = &made["spec"]["versions"][0];
        assert_eq!(v1["subresources"]["status"], json!({}));
        assert_eq!(v1["subresources"]["scale"]["specReplicasPath"], ".spec.replicas");
        let schema = &v1["schema"]["openAPIV3Schema"];
        assert_eq!(schema["required"], json!(["spec"]));
        assert_eq!(schema["properties"]["status"]["properties"]["replicas"], json!({"type": "integer"}));
        assert_eq!(
            schema["properties"]["status"]["properties"]["conditions"]["x-kubernetes-list-type"],
            "map"
        );
        assert_eq!(
            made["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["status"]["type"],
            "object"
        );
    }

    #[test]
    fn wrong_templates_are_refused_by_field() {
        let error = |versions: Value| definition(&airway(versions)).unwrap_err().to_string();
        assert!(
            error(json!([{"name": "v1", "served": true, "storage": false}]))
                .contains("spec.template.versions: must have exactly one version with storage: true")
        );
        let text = error(json!([{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "string"}}}}}]));
        assert!(text.contains("status must be an object but got type: \"string\""), "{text}");
        let mut named = airway(json!([{"name": "v1", "served": true, "storage": true}]));
        named.metadata.name = Some("other".into());
        assert!(definition(&named).unwrap_err().to_string().contains("\"backends.examples.com\""));
    }
}
