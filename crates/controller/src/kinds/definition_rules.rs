//! The rules of CustomResourceDefinitions.

use std::collections::BTreeSet;

use horchestra_core::field_error::FieldError;
use horchestra_core::schema::Schema;
use serde_json::{Value, json};

use super::fields::{get, list, text};
use super::jsonpath::JsonPath;
use crate::name::NameRule;

/// More versions than this are refused.
const MAX_VERSIONS: usize = 64;

/// Adds what is wrong with a definition.
pub(super) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let group = text(object, &["spec", "group"]);
    let plural = text(object, &["spec", "names", "plural"]);
    let name = text(object, &["metadata", "name"]);
    if name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid(
            "metadata.name",
            &json!(name),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Some(why) = NameRule::Subdomain.check(group) {
        errors.push(FieldError::invalid("spec.group", &json!(group), why));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(
            "spec.group",
            &json!(group),
            "should be a domain with at least one dot",
        ));
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        let value = text(object, &["spec", "names", field]);
        let label = value.to_lowercase();
        let lower = matches!(field, "plural" | "singular");
        if value.is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        } else if let Some(why) = NameRule::Label.check(if lower { value } else { &label }) {
            errors.push(FieldError::invalid(format!("spec.names.{field}"), &json!(value), why));
        }
    }
    for field in ["shortNames", "categories"] {
        for (index, value) in list(object, &["spec", "names", field]).iter().enumerate() {
            if let Some(why) = NameRule::Label.check(value.as_str().unwrap_or_default()) {
                errors.push(FieldError::invalid(format!("spec.names.{field}[{index}]"), value, why));
            }
        }
    }
    let scope = text(object, &["spec", "scope"]);
    if !matches!(scope, "Namespaced" | "Cluster") {
        errors.push(FieldError::not_supported("spec.scope", &json!(scope), &["Cluster", "Namespaced"]));
    }
    if get(object, &["spec", "preserveUnknownFields"]).is_some() {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            &json!(true),
            "must be false or x-kubernetes-preserve-unknown-fields: true on the schema",
        ));
    }
    let strategy = text(object, &["spec", "conversion", "strategy"]);
    if strategy != "None" {
        errors.push(FieldError::not_supported("spec.conversion.strategy", &json!(strategy), &["None"]));
    }
    validate_versions(object, errors);
}

fn validate_versions(object: &Value, errors: &mut Vec<FieldError>) {
    let versions = list(object, &["spec", "versions"]);
    if versions.is_empty() {
        errors.push(FieldError::required("spec.versions", "must have at least one version"));
    }
    if versions.len() > MAX_VERSIONS {
        errors.push(FieldError::too_many("spec.versions", versions.len(), MAX_VERSIONS));
        return;
    }
    let stored = versions.iter().filter(|v| get(v, &["storage"]) == Some(&Value::Bool(true))).count();
    if stored != 1 && !versions.is_empty() {
        errors.push(FieldError::invalid(
            "spec.versions",
            &json!(stored),
            "must have exactly one version marked as storage version",
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, &["name"]);
        if let Some(why) = NameRule::Label.check(name) {
            errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), why));
        }
        if !seen.insert(name) {
            errors.push(FieldError::invalid(
                "spec.versions",
                &json!(name),
                "must contain unique version names",
            ));
        }
        match get(version, &["schema", "openAPIV3Schema"]) {
            None => errors
                .push(FieldError::required(format!("{path}.schema.openAPIV3Schema"), "schemas are required")),
            Some(schema) => {
                let at = format!("{path}.schema.openAPIV3Schema");
                if text(schema, &["type"]) != "object" {
                    errors.push(FieldError::invalid(
                        format!("{at}.type"),
                        &json!(text(schema, &["type"])),
                        "must be object at the root",
                    ));
                }
                if let Err(found) = Schema::parse(schema) {
                    errors.extend(found.into_iter().map(|error| error.under(&at)));
                }
            }
        }
        for (column, definition) in list(version, &["additionalPrinterColumns"]).iter().enumerate() {
            let at = format!("{path}.additionalPrinterColumns[{column}]");
            if text(definition, &["name"]).is_empty() {
                errors.push(FieldError::required(format!("{at}.name"), ""));
            }
            let kind = text(definition, &["type"]);
            if !matches!(kind, "integer" | "number" | "string" | "boolean" | "date") {
                errors.push(FieldError::not_supported(
                    format!("{at}.type"),
                    &json!(kind),
                    &["boolean", "date", "integer", "number", "string"],
                ));
            }
            if let Err(why) = JsonPath::parse(text(definition, &["jsonPath"])) {
                errors.push(FieldError::invalid(
                    format!("{at}.jsonPath"),
                    &json!(text(definition, &["jsonPath"])),
                    why,
                ));
            }
        }
    }
}
