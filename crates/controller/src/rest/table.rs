//! Tables: objects as rows, which `kubectl get` prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Column, Endpoint};

/// What a row carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// A Table of `objects`. `version` is `v1` or `v1beta1` of `meta.k8s.io`.
#[must_use]
pub fn table(
    endpoint: &Endpoint,
    objects: &[&Value],
    metadata: Value,
    include: IncludeObject,
    version: &str,
    headings: bool,
) -> Value {
    let columns = &endpoint.version().columns;
    let now = Timestamp::now();
    let rows: Vec<Value> = objects.iter().map(|object| row(columns, object, include, version, now)).collect();
    let mut table = json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
        "columnDefinitions": null,
        "rows": rows,
    });
    if headings {
        table["columnDefinitions"] = columns
            .iter()
            .map(|column| {
                json!({
                    "name": column.name,
                    "type": column.kind,
                    "format": column.format,
                    "description": column.description,
                    "priority": column.priority,
                })
            })
            .collect();
    }
    table
}

fn row(columns: &[Column], object: &Value, include: IncludeObject, version: &str, now: Timestamp) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| column.cell(object, now)).collect();
    let mut row = json!({"cells": cells});
    match include {
        IncludeObject::None => {}
        IncludeObject::Metadata => row["object"] = partial(object, version),
        IncludeObject::Object => row["object"] = object.clone(),
    }
    row
}

/// Only the metadata of an object.
#[must_use]
pub fn partial(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata"),
    })
}
