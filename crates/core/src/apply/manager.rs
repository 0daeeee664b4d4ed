//! Who writes.

use crate::managed_fields::{FieldSet, ManagerEntry, Operation};

/// Who writes, through which version and part of the object, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The field manager's name.
    pub name: String,
    /// The version of what is written, such as `apps/v1`.
    pub api_version: String,
    /// The subresource that is written; None for the object itself.
    pub subresource: Option<String>,
    /// Now, RFC 3339. Passed in, since nothing here has a clock.
    pub time: String,
}

impl Manager {
    pub(super) fn entry(&self, operation: Operation, fields: FieldSet) -> ManagerEntry {
        ManagerEntry {
            manager: if self.name.is_empty() { "unknown".to_owned() } else { self.name.clone() },
            operation,
            api_version: self.api_version.clone(),
            time: Some(self.time.clone()),
            subresource: self.subresource.clone().unwrap_or_default(),
            fields,
        }
    }
}
