//! From an OpenAPI v3 schema to a compiled one.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::meta;
use super::node::{Additional, ListKind, Node, PatchHints, Schema, Types};
use super::structural;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 64;
/// Most positions of a schema.
const MAX_NODES: usize = 50_000;
/// Most errors that are reported.
const MAX_ERRORS: usize = 100;

const FORBIDDEN: [&str; 11] = [
    "$ref",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "additionalItems",
];

impl Schema {
    /// Compiles the `openAPIV3Schema` of a CustomResourceDefinition and checks that it is structural, by the rules of
    /// `apiextensions.k8s.io/v1`.
    ///
    /// One rule is left to the caller: that a definition's `metadata` restricts name and generateName alone (a complete
    /// schema, with all of metadata, is fine here). For Kubernetes' own documents use [`Schema::parse_built_in`].
    ///
    /// # Errors
    /// Every field of the schema that breaks a rule.
    pub fn parse(schema: &Value) -> Result<Self, Vec<FieldError>> {
        compile(schema, false)
    }

    /// Compiles the schema of a built-in kind from Kubernetes' OpenAPI document, references inlined.
    ///
    /// Those are not structural: a position without a type, or an object without fields, may hold anything; the empty
    /// defaults (`{}`, `""`, `0`, `false`) only tell that Go has no pointer there, and are ignored; list types may be
    /// given by `x-kubernetes-patch-strategy`.
    ///
    /// # Errors
    /// Every field of the schema that is malformed.
    pub fn parse_built_in(schema: &Value) -> Result<Self, Vec<FieldError>> {
        compile(schema, true)
    }
}

fn compile(schema: &Value, built_in: bool) -> Result<Schema, Vec<FieldError>> {
    let mut compiler = Compiler { built_in, nodes: 0, errors: Vec::new(), not_enforced: Vec::new() };
    let place =
        Place { path: FieldPath::root(), depth: 0, role: Role::Field("at the root"), int_or_string: false };
    let mut root = compiler.node(schema, &place);
    if !built_in && !root.types.is_any() && !root.types.is("object") {
        compiler.errors.push(FieldError::invalid(
            "type",
            &Value::from(root.types.names()),
            "must be object at the root",
        ));
    }
    root.resource = true;
    meta::complete(&mut root);
    if !built_in && compiler.errors.is_empty() {
        structural::check(&root, &mut compiler.errors);
    }
    if compiler.errors.is_empty() {
        Ok(Schema { root: Arc::new(root), not_enforced: compiler.not_enforced.into(), plain_status: false })
    } else {
        compiler.errors.truncate(MAX_ERRORS);
        Err(compiler.errors)
    }
}

/// What a position is for; a field must have a type, value validation must not.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Field(&'static str),
    Validation,
}

pub(super) struct Place {
    pub(super) path: FieldPath,
    depth: usize,
    role: Role,
    /// Inside value validation: it belongs to an int-or-string, where types may be named.
    pub(super) int_or_string: bool,
}

impl Place {
    fn inside(&self, path: FieldPath, role: &'static str) -> Self {
        let role = if self.role == Role::Validation { Role::Validation } else { Role::Field(role) };
        Self { path, depth: self.depth + 1, role, int_or_string: false }
    }

    pub(super) fn validation(&self, path: FieldPath, int_or_string: bool) -> Self {
        Self { path, depth: self.depth + 1, role: Role::Validation, int_or_string }
    }
}

pub(super) struct Compiler {
    pub(super) built_in: bool,
    nodes: usize,
    pub(super) errors: Vec<FieldError>,
    not_enforced: Vec<String>,
}

impl Compiler {
    pub(super) fn node(&mut self, schema: &Value, place: &Place) -> Node {
        let path = &place.path;
        self.nodes += 1;
        if place.depth > MAX_DEPTH || self.nodes > MAX_NODES {
            if self.errors.len() < MAX_ERRORS {
                let detail = format!("a schema may be {MAX_DEPTH} deep and have {MAX_NODES} positions");
                self.errors.push(FieldError::forbidden(path.clone(), detail));
            }
            return Node::default();
        }
        let Some(schema) = schema.as_object() else {
            self.errors.push(FieldError::type_invalid(path.clone(), schema, "must be an object"));
            return Node::default();
        };
        for keyword in FORBIDDEN {
            if schema.contains_key(keyword) && !self.built_in {
                self.errors.push(FieldError::forbidden(path.field(keyword), "must not be set"));
            }
        }
        if schema.contains_key("x-kubernetes-validations") {
            self.not_enforced.push(path.field("x-kubernetes-validations").to_string());
        }
        let mut node = Node {
            nullable: self.flag(schema, "nullable", path),
            preserve: self.flag(schema, "x-kubernetes-preserve-unknown-fields", path),
            embedded: self.flag(schema, "x-kubernetes-embedded-resource", path),
            ..Node::default()
        };
        self.types(schema, place, &mut node);
        self.children(schema, place, &mut node);
        self.merging(schema, path, &mut node);
        self.default_value(schema, &mut node);
        self.rules(schema, place, &mut node);
        if node.embedded {
            node.resource = true;
            meta::complete(&mut node);
        }
        node
    }

    pub(super) fn flag(&mut self, schema: &Map<String, Value>, keyword: &str, path: &FieldPath) -> bool {
        match schema.get(keyword) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.errors.push(FieldError::type_invalid(
                    path.field(keyword),
                    other,
                    "must be true or false",
                ));
                false
            }
        }
    }

    fn types(&mut self, schema: &Map<String, Value>, place: &Place, node: &mut Node) {
        let path = &place.path;
        let int_or_string = self.flag(schema, "x-kubernetes-int-or-string", path)
            || (self.built_in && schema.get("format").and_then(Value::as_str) == Some("int-or-string"));
        if int_or_string {
            node.types = Types::INT_OR_STRING;
        }
        match schema.get("type") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() => {}
            Some(Value::String(_)) if int_or_string && self.built_in => {}
            Some(Value::String(name)) => match Types::named(name) {
                _ if int_or_string => {
                    self.errors.push(FieldError::invalid(
                        path.field("type"),
                        &Value::from(name.as_str()),
                        "must be empty with x-kubernetes-int-or-string",
                    ));
                }
                Some(types) => node.types = types,
                None => {
                    let supported = ["array", "boolean", "integer", "number", "object", "string"];
                    self.errors.push(FieldError::not_supported(
                        path.field("type"),
                        &Value::from(name.as_str()),
                        &supported,
                    ));
                }
            },
            Some(other) => {
                self.errors.push(FieldError::type_invalid(path.field("type"), other, "must be a string"))
            }
        }
        if self.built_in {
            let hollow = !schema.contains_key("properties") && !schema.contains_key("additionalProperties");
            node.preserve |= hollow && (node.types.is_any() || node.types.is("object"));
            return;
        }
        match place.role {
            Role::Validation => {
                if schema.contains_key("type") && !place.int_or_string {
                    self.errors
                        .push(FieldError::forbidden(path.field("type"), "must be empty to be structural"));
                }
                for keyword in ["default", "nullable", "additionalProperties", "description", "title"] {
                    if schema.contains_key(keyword) {
                        self.errors.push(FieldError::forbidden(
                            path.field(keyword),
                            "must be undefined to be structural",
                        ));
                    }
                }
            }
            Role::Field(what) => {
                if node.types.is_any() && !node.preserve && !schema.get("type").is_some_and(Value::is_string)
                {
                    self.errors
                        .push(FieldError::required(path.field("type"), format!("must not be empty {what}")));
                }
            }
        }
        if node.embedded && !node.types.is("object") {
            self.errors.push(FieldError::invalid(
                path.field("type"),
                &Value::from(node.types.names()),
                "must be object if x-kubernetes-embedded-resource is true",
            ));
        }
    }

    fn children(&mut self, schema: &Map<String, Value>, place: &Place, node: &mut Node) {
        let path = &place.path;
        match schema.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(properties)) => {
                for (name, property) in properties {
                    let at = path.field("properties").key(name.as_str());
                    let compiled = self.node(property, &place.inside(at, "for specified object fields"));
                    node.properties.insert(name.as_str().into(), Arc::new(compiled));
                }
            }
            Some(other) => self.errors.push(FieldError::type_invalid(
                path.field("properties"),
                other,
                "must be an object",
            )),
        }
        let at = path.field("additionalProperties");
        match schema.get("additionalProperties") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(false)) if !self.built_in => {
                self.errors.push(FieldError::forbidden(at, "must not be used with value false"));
            }
            Some(Value::Bool(any)) => node.additional = if *any { Additional::Any } else { Additional::None },
            Some(other) => {
                if !node.properties.is_empty() && !self.built_in {
                    self.errors.push(FieldError::forbidden(
                        at.clone(),
                        "additionalProperties and properties are mutual exclusive",
                    ));
                }
                let compiled = self.node(other, &place.inside(at, "for specified object fields"));
                node.additional = Additional::Node(Arc::new(compiled));
            }
        }
        match schema.get("items") {
            None | Some(Value::Null) => {
                if !self.built_in && node.types.is("array") && place.role != Role::Validation {
                    self.errors.push(FieldError::required(path.field("items"), "must be specified"));
                }
            }
            Some(Value::Array(_)) => {
                self.errors.push(FieldError::forbidden(
                    path.field("items"),
                    "items must be a schema object and not an array",
                ));
            }
            Some(items) => {
                let compiled =
                    self.node(items, &place.inside(path.field("items"), "for specified array items"));
                node.items = Some(Arc::new(compiled));
            }
        }
    }

    /// How lists and maps merge. Without a list type, `x-kubernetes-patch-strategy` says it for built-in kinds.
    fn merging(&mut self, schema: &Map<String, Value>, path: &FieldPath, node: &mut Node) {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let strategy = text("x-kubernetes-patch-strategy").unwrap_or_default();
        if !strategy.is_empty() || schema.contains_key("x-kubernetes-patch-merge-key") {
            node.patch = Some(Box::new(PatchHints {
                merge: strategy.split(',').any(|part| part == "merge"),
                merge_key: text("x-kubernetes-patch-merge-key").map(Into::into),
            }));
        }
        let keys: Vec<Box<str>> = match schema.get("x-kubernetes-list-map-keys") {
            Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).map(Into::into).collect(),
            _ => Vec::new(),
        };
        let at = path.field("x-kubernetes-list-type");
        node.list = match text("x-kubernetes-list-type") {
            Some("map") if keys.is_empty() => {
                let at = path.field("x-kubernetes-list-map-keys");
                self.errors
                    .push(FieldError::required(at, "must not be empty if x-kubernetes-list-type is map"));
                ListKind::Atomic
            }
            Some("map") => ListKind::Map(keys),
            Some("set") => ListKind::Set,
            Some("atomic") => ListKind::Atomic,
            Some(other) => {
                self.errors.push(FieldError::not_supported(
                    at,
                    &Value::from(other),
                    &["atomic", "map", "set"],
                ));
                ListKind::Atomic
            }
            None if !keys.is_empty() => {
                let at = path.field("x-kubernetes-list-map-keys");
                self.errors
                    .push(FieldError::forbidden(at, "may only be set if x-kubernetes-list-type is map"));
                ListKind::Atomic
            }
            None => match node.patch.as_deref() {
                Some(PatchHints { merge: true, merge_key: Some(key) }) => ListKind::Map(vec![key.clone()]),
                Some(PatchHints { merge: true, merge_key: None }) => ListKind::Set,
                _ => ListKind::Atomic,
            },
        };
        node.atomic_map = match text("x-kubernetes-map-type") {
            Some("atomic") => true,
            None | Some("granular") => false,
            Some(other) => {
                let at = path.field("x-kubernetes-map-type");
                self.errors.push(FieldError::not_supported(at, &Value::from(other), &["atomic", "granular"]));
                false
            }
        };
    }

    fn default_value(&self, schema: &Map<String, Value>, node: &mut Node) {
        let empty = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Object(map) => map.is_empty(),
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            _ => false,
        };
        let absent = |value: &Value| value.is_null() || (self.built_in && empty(value));
        node.default = schema.get("default").filter(|value| !absent(value)).cloned();
    }
}
