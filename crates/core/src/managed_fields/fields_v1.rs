//! `FieldsV1`, the JSON form of a set.

use serde_json::{Map, Value};

use super::element::PathElement;
use super::set::FieldSet;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

/// Deepest path that is read.
const MAX_DEPTH: usize = 100;

impl FieldSet {
    /// Reads `FieldsV1`.
    ///
    /// # Errors
    /// The key that is not understood, or that nests too deeply.
    pub fn from_json(value: &Value) -> Result<Self, FieldError> {
        match value {
            Value::Null => Ok(Self::new()),
            Value::Object(fields) => read(fields, 0),
            other => Err(FieldError::type_invalid(FieldPath::root(), other, "must be an object")),
        }
    }

    /// Writes `FieldsV1`. A member with something below it has the key `.`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (element, member, children) in self.entries() {
            let mut inside = children.to_json();
            if let (true, false, Value::Object(inside)) = (member, children.is_empty(), &mut inside) {
                inside.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(element.to_key(), inside);
        }
        Value::Object(out)
    }
}

fn read(fields: &Map<String, Value>, depth: usize) -> Result<FieldSet, FieldError> {
    if depth > MAX_DEPTH {
        return Err(FieldError::forbidden(FieldPath::root(), format!("nested more than {MAX_DEPTH} deep")));
    }
    let mut set = FieldSet::new();
    for (key, value) in fields {
        if key == "." {
            continue;
        }
        let at = FieldPath::root().key(key.as_str());
        let Some(element) = PathElement::parse(key) else {
            return Err(FieldError::invalid(
                at,
                &Value::from(key.as_str()),
                "must start with f:, k:, v: or i:",
            ));
        };
        let Value::Object(inside) = value else {
            return Err(FieldError::type_invalid(at, value, "must be an object"));
        };
        let member = inside.is_empty() || inside.contains_key(".");
        let children = read(inside, depth + 1).map_err(|error| error.under(at))?;
        set.put(element, member, children);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_what_kubernetes_wrote() {
        // From the server-side apply page of Kubernetes' documentation, and a Deployment's containers.
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:test-label": {}}},
            "f:spec": {"f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"nginx\"}": {
                    ".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                },
            }}}},
        });
        let set = FieldSet::from_json(&fields).expect("valid");
        assert_eq!(set.to_json(), fields);
        let shown = set.to_string();
        assert!(shown.contains(".metadata.labels.test-label\n"), "{shown}");
        assert!(shown.contains(r#".spec.template.spec.containers[name="nginx"].ports[containerPort=80,protocol="TCP"].containerPort"#), "{shown}");
        assert!(!shown.lines().any(|line| line == ".spec"), "{shown}");
    }

    #[test]
    fn refuses_what_is_none() {
        for bad in [json!([]), json!({"x": {}}), json!({"f:a": 1}), json!({"f:a": {"k:1": {}}})] {
            assert!(FieldSet::from_json(&bad).is_err(), "{bad}");
        }
        let deep = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
        assert!(FieldSet::from_json(&deep).is_err());
        let error = FieldSet::from_json(&json!({"f:a": {"f:b": 1}})).expect_err("a number");
        assert_eq!(error.to_string(), "[f:a][f:b]: Invalid value: 1: must be an object");
    }
}
