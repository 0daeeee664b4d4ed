//! Checking values against a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::node::{Additional, Bound, ListKind, Node, Rules, Schema};
use crate::field_error::FieldError;
use crate::field_path::Trail;

/// Most errors that one object gets; more help nobody.
const MAX_ERRORS: usize = 100;

impl Schema {
    /// Every field that breaks a rule, in the kube-apiserver's words; none if the object is valid.
    ///
    /// Unknown fields are no errors here: prune first. At most 100 errors are answered.
    #[must_use]
    pub fn validate(&self, value: &Value) -> Vec<FieldError> {
        validate_node(value, &self.root)
    }
}

pub(super) fn validate_node(value: &Value, node: &Node) -> Vec<FieldError> {
    let mut report = Report { errors: Vec::new() };
    report.value(value, node, Trail::Root);
    report.errors.truncate(MAX_ERRORS);
    report.errors
}

fn is_valid(value: &Value, node: &Node) -> bool {
    let mut report = Report { errors: Vec::new() };
    report.value(value, node, Trail::Root);
    report.errors.is_empty()
}

struct Report {
    errors: Vec<FieldError>,
}

impl Report {
    fn add(&mut self, error: FieldError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    /// `spec.replicas in body should be ...`, as the OpenAPI validator of Kubernetes words it.
    fn invalid(&mut self, trail: Trail<'_>, value: &Value, rule: &str) {
        let path = trail.to_path();
        let subject = if path.is_root() { String::new() } else { format!("{path} ") };
        self.add(FieldError::invalid(path, value, format!("{subject}in body {rule}")));
    }

    fn value(&mut self, value: &Value, node: &Node, trail: Trail<'_>) {
        if self.errors.len() >= MAX_ERRORS || (value.is_null() && (node.nullable || node.types.is_any())) {
            return;
        }
        if !node.types.allow(value) {
            let (path, found, wanted) = (trail.to_path(), type_name(value), node.types.names());
            let subject = if path.is_root() { String::new() } else { format!("{path} ") };
            let detail = format!("{subject}in body must be of type {wanted}: \"{found}\"");
            self.add(FieldError::type_invalid(path, &Value::from(found), detail));
            return;
        }
        match value {
            Value::Object(map) => self.object(map, node, trail),
            Value::Array(list) => self.list(list, node, trail),
            _ => {}
        }
        if let Some(rules) = &node.rules {
            self.rules(value, rules, trail);
        }
    }

    fn object(&mut self, map: &Map<String, Value>, node: &Node, trail: Trail<'_>) {
        if node.embedded {
            for name in ["apiVersion", "kind"] {
                if map.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                    self.add(FieldError::required(Trail::Field(&trail, name).to_path(), "must not be empty"));
                }
            }
        }
        if node.properties.is_empty() && !matches!(node.additional, Additional::Node(_)) {
            return;
        }
        for (name, value) in map {
            if let Some(field) = node.field(name) {
                self.value(value, field, Trail::Field(&trail, name));
            }
        }
    }

    fn list(&mut self, list: &[Value], node: &Node, trail: Trail<'_>) {
        if let Some(items) = node.item() {
            for (index, item) in list.iter().enumerate() {
                self.value(item, items, Trail::Index(&trail, index));
            }
        }
        let mut seen = BTreeSet::new();
        match &node.list {
            ListKind::Atomic => {}
            ListKind::Set => {
                for (index, item) in list.iter().enumerate() {
                    if !seen.insert(item.to_string()) {
                        self.add(FieldError::duplicate(Trail::Index(&trail, index).to_path(), item));
                    }
                }
            }
            ListKind::Map(keys) => {
                for (index, item) in list.iter().enumerate() {
                    let found =
                        keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
                    let key = Value::Object(found.collect());
                    if !seen.insert(key.to_string()) {
                        self.add(FieldError::duplicate(Trail::Index(&trail, index).to_path(), &key));
                    }
                }
            }
        }
    }

    fn rules(&mut self, value: &Value, rules: &Rules, trail: Trail<'_>) {
        if !rules.one_of_values.is_empty() && !rules.one_of_values.iter().any(|allowed| same(allowed, value))
        {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let supported: Vec<String> = rules.one_of_values.iter().map(text).collect();
            let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
            self.add(FieldError::not_supported(trail.to_path(), value, &supported));
        }
        match value {
            Value::Number(number) => self.number(value, number, rules, trail),
            Value::String(text) => self.text(value, text, rules, trail),
            Value::Array(list) => self.list_size(value, list, rules, trail),
            Value::Object(map) => self.object_size(value, map, rules, trail),
            Value::Null | Value::Bool(_) => {}
        }
        self.junctors(value, rules, trail);
    }

    fn number(&mut self, value: &Value, number: &Number, rules: &Rules, trail: Trail<'_>) {
        let breaks = |bound: &Bound, wrong: std::cmp::Ordering| {
            let order = compare(number, &bound.limit);
            order == Some(wrong) || (bound.exclusive && order == Some(std::cmp::Ordering::Equal))
        };
        if let Some(bound) = rules.minimum.as_ref().filter(|bound| breaks(bound, std::cmp::Ordering::Less)) {
            let or = if bound.exclusive { "" } else { " or equal to" };
            self.invalid(trail, value, &format!("should be greater than{or} {}", bound.limit));
        }
        if let Some(bound) = rules.maximum.as_ref().filter(|bound| breaks(bound, std::cmp::Ordering::Greater))
        {
            let or = if bound.exclusive { "" } else { " or equal to" };
            self.invalid(trail, value, &format!("should be less than{or} {}", bound.limit));
        }
        if let Some(factor) = rules.multiple_of.as_ref().filter(|factor| !is_multiple(number, factor)) {
            self.invalid(trail, value, &format!("should be a multiple of {factor}"));
        }
        if let (Some(format), Some(float)) = (rules.format, number.as_f64())
            && !format.allows_number(float)
        {
            self.invalid(trail, value, &format!("must be of type {}: {number}", format.name()));
        }
    }

    fn text(&mut self, value: &Value, text: &str, rules: &Rules, trail: Trail<'_>) {
        if rules.max_length.is_some() || rules.min_length.is_some() {
            let length = text.chars().count();
            if let Some(max) = rules.max_length.filter(|max| length > *max) {
                self.add(FieldError::too_long(trail.to_path(), max));
            }
            if let Some(min) = rules.min_length.filter(|min| length < *min) {
                self.invalid(trail, value, &format!("should be at least {min} chars long"));
            }
        }
        if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
            self.invalid(trail, value, &format!("should match '{}'", pattern.source()));
        }
        if let Some(format) = rules.format.filter(|format| !format.allows_text(text)) {
            let rule = format!("must be of type {}: {}", format.name(), crate::field_error::shown(value));
            self.invalid(trail, value, &rule);
        }
    }

    fn list_size(&mut self, value: &Value, list: &[Value], rules: &Rules, trail: Trail<'_>) {
        if let Some(max) = rules.max_items.filter(|max| list.len() > *max) {
            self.add(FieldError::too_many(trail.to_path(), list.len(), max));
        }
        if let Some(min) = rules.min_items.filter(|min| list.len() < *min) {
            self.invalid(trail, value, &format!("should have at least {min} items"));
        }
        if rules.unique_items {
            let distinct: BTreeSet<String> = list.iter().map(Value::to_string).collect();
            if distinct.len() < list.len() {
                self.invalid(trail, value, "shouldn't contain duplicates");
            }
        }
    }

    fn object_size(&mut self, value: &Value, map: &Map<String, Value>, rules: &Rules, trail: Trail<'_>) {
        for name in &rules.required {
            if !map.contains_key(&**name) {
                self.add(FieldError::required(Trail::Field(&trail, name).to_path(), ""));
            }
        }
        if let Some(max) = rules.max_properties.filter(|max| map.len() > *max) {
            self.add(FieldError::too_many(trail.to_path(), map.len(), max));
        }
        if let Some(min) = rules.min_properties.filter(|min| map.len() < *min) {
            self.invalid(trail, value, &format!("should have at least {min} properties"));
        }
    }

    fn junctors(&mut self, value: &Value, rules: &Rules, trail: Trail<'_>) {
        for rule in &rules.all_of {
            self.value(value, rule, trail);
        }
        if !rules.any_of.is_empty() && !rules.any_of.iter().any(|rule| is_valid(value, rule)) {
            self.invalid(trail, value, "must validate at least one schema (anyOf)");
        }
        if !rules.one_of.is_empty() {
            match rules.one_of.iter().filter(|rule| is_valid(value, rule)).count() {
                1 => {}
                0 => self.invalid(
                    trail,
                    value,
                    "must validate one and only one schema (oneOf). Found none valid",
                ),
                count => {
                    let rule = format!(
                        "must validate one and only one schema (oneOf). Found {count} valid alternatives"
                    );
                    self.invalid(trail, value, &rule);
                }
            }
        }
        if rules.not.as_ref().is_some_and(|rule| is_valid(value, rule)) {
            self.invalid(trail, value, "must not validate the schema (not)");
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare(one: &Number, other: &Number) -> Option<std::cmp::Ordering> {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    match (whole(number), whole(factor)) {
        (Some(number), Some(factor)) => factor != 0 && number % factor == 0,
        _ => number.as_f64().zip(factor.as_f64()).is_some_and(|(number, factor)| {
            let quotient = number / factor;
            (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
        }),
    }
}

/// Equality of JSON values, where 1 and 1.0 are one number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Some(std::cmp::Ordering::Equal),
        _ => one == other,
    }
}
