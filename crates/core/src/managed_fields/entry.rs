//! The entries of `metadata.managedFields`.

use serde_json::{Map, Value};

use super::set::FieldSet;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    /// As it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerEntry {
    /// The manager's name.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// The version its paths belong to.
    pub api_version: String,
    /// When it last came to own a field, RFC 3339.
    pub time: Option<String>,
    /// Through which subresource it writes; empty for the object itself.
    pub subresource: String,
    /// Its fields.
    pub fields: FieldSet,
}

impl ManagerEntry {
    /// Whether two entries are of one manager. An applier is one whatever version it applies; an updater is another
    /// one in each version.
    #[must_use]
    pub fn same_manager(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn from_json(value: &Value) -> Result<Self, FieldError> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match value.get("operation").and_then(Value::as_str) {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => {
                let found = value.get("operation").cloned().unwrap_or(Value::Null);
                return Err(FieldError::invalid("operation", &found, "must be `Apply` or `Update`"));
            }
        };
        let kind = value.get("fieldsType").and_then(Value::as_str).unwrap_or("FieldsV1");
        if kind != "FieldsV1" {
            return Err(FieldError::invalid("fieldsType", &Value::from(kind), "must be `FieldsV1`"));
        }
        let fields = value.get("fieldsV1").unwrap_or(&Value::Null);
        Ok(Self {
            manager: text("manager"),
            operation,
            api_version: text("apiVersion"),
            time: value.get("time").and_then(Value::as_str).map(str::to_owned),
            subresource: text("subresource"),
            fields: FieldSet::from_json(fields).map_err(|error| error.under("fieldsV1"))?,
        })
    }

    fn to_json(&self) -> Value {
        let mut out = Map::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                out.insert(name.to_owned(), Value::from(value));
            }
        };
        put("manager", &self.manager);
        put("operation", self.operation.as_str());
        put("apiVersion", &self.api_version);
        put("time", self.time.as_deref().unwrap_or_default());
        put("subresource", &self.subresource);
        put("fieldsType", "FieldsV1");
        out.insert("fieldsV1".to_owned(), self.fields.to_json());
        Value::Object(out)
    }
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields(Vec<ManagerEntry>);

impl ManagedFields {
    /// Most entries that are read.
    const MAX_ENTRIES: usize = 1000;

    /// Reads `metadata.managedFields`; null and absence are none.
    ///
    /// # Errors
    /// The entry and field that is malformed.
    pub fn from_json(value: Option<&Value>) -> Result<Self, FieldError> {
        let list = match value {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(FieldError::type_invalid(FieldPath::root(), other, "must be a list")),
        };
        if list.len() > Self::MAX_ENTRIES {
            return Err(FieldError::too_many(FieldPath::root(), list.len(), Self::MAX_ENTRIES));
        }
        let read = |(index, entry)| {
            ManagerEntry::from_json(entry).map_err(|error| error.under(FieldPath::root().index(index)))
        };
        list.iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Writes `metadata.managedFields`, in Kubernetes' order: appliers first, then by time, name, version, subresource.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut sorted: Vec<&ManagerEntry> = self.0.iter().collect();
        sorted.sort_by(|a, b| {
            let key = |entry: &ManagerEntry| {
                (
                    entry.operation,
                    entry.time.clone(),
                    entry.manager.clone(),
                    entry.api_version.clone(),
                    entry.subresource.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        Value::Array(sorted.into_iter().map(ManagerEntry::to_json).collect())
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[ManagerEntry] {
        &self.0
    }

    /// Whether nobody owns anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) const fn entries_mut(&mut self) -> &mut Vec<ManagerEntry> {
        &mut self.0
    }

    /// Whether the same managers own the same fields, whenever they came to.
    #[must_use]
    pub fn same_owners(&self, other: &Self) -> bool {
        let same = |a: &ManagerEntry, b: &ManagerEntry| {
            a.same_manager(b) && a.api_version == b.api_version && a.fields == b.fields
        };
        self.0.len() == other.0.len()
            && self.0.iter().all(|ours| other.0.iter().any(|theirs| same(ours, theirs)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_and_sorts_entries() {
        let entry = |manager: &str, operation: &str, time: &str| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:key": {}}}})
        };
        let (a, b) =
            (entry("a", "Update", "2026-01-01T00:00:00Z"), entry("b", "Apply", "2026-01-02T00:00:00Z"));
        let mut status = entry("c", "Update", "2025-01-01T00:00:00Z");
        status["subresource"] = json!("status");
        let read = ManagedFields::from_json(Some(&json!([a, b, status]))).expect("valid");
        assert_eq!(read.to_json(), json!([b, status, a]));
        assert_eq!(ManagedFields::from_json(Some(&Value::Null)), Ok(ManagedFields::default()));
        for bad in [
            json!({}),
            json!([1]),
            json!([{"operation": "Apply", "fieldsType": "FieldsV2"}]),
            json!([{"operation": "Apply", "fieldsV1": {"x": {}}}]),
        ] {
            assert!(ManagedFields::from_json(Some(&bad)).is_err(), "{bad}");
        }
    }
}
