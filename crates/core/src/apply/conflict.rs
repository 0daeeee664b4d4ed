//! Why an apply was refused.

use std::collections::BTreeMap;

use crate::field_error::FieldError;
use crate::managed_fields::{FieldSet, ManagerEntry, Operation, PathElement};

/// One field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager's name.
    pub manager: String,
    /// The field, as Kubernetes prints it: `.spec.replicas`.
    pub path: String,
    /// The other manager in Kubernetes' words: `"kubectl" using apps/v1`.
    pub who: String,
}

/// Most conflicts that are named for one manager.
const MAX_NAMED: usize = 256;
/// Longest path that is printed whole, in bytes.
const MAX_PATH: usize = 1024;

impl Conflict {
    /// The `message` of the cause in a `Status`, whose `reason` is `FieldManagerConflict`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", self.who)
    }

    pub(super) fn of(entry: &ManagerEntry, fields: &FieldSet) -> Vec<Self> {
        let mut who = format!("{:?}", entry.manager);
        if !entry.subresource.is_empty() {
            who.push_str(&format!(" with subresource {:?}", entry.subresource));
        }
        if entry.operation == Operation::Update {
            who.push_str(&format!(" using {}", entry.api_version));
        }
        let conflict =
            |path: Vec<_>| Self { manager: entry.manager.clone(), path: printed(&path), who: who.clone() };
        fields.paths().into_iter().take(MAX_NAMED).map(conflict).collect()
    }
}

fn printed(path: &[&PathElement]) -> String {
    let mut out = String::new();
    for element in path {
        let element = element.to_string();
        if out.len() + element.len() > MAX_PATH {
            out.push_str("...");
            break;
        }
        out.push_str(&element);
    }
    out
}

/// Why an apply was refused. The object stays as it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields that the applied object sets to other values. Apply without them, with their values, or
    /// with force.
    #[error("{}", conflicts_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The applied object cannot be applied as it is.
    #[error("{0}")]
    Invalid(FieldError),
}

/// The message of the `Status`, as the kube-apiserver words it.
fn conflicts_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", one.message(), one.path);
    }
    let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.who).or_default().push(&conflict.path);
    }
    let mut lines = Vec::new();
    for (who, paths) in by_manager {
        lines.push(format!("conflicts with {who}:"));
        lines.extend(paths.into_iter().map(|path| format!("- {path}")));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
