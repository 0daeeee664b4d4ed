//! What is particular to a kind: defaults, rules, and what writes do to its objects.

use std::fmt;

use horchestra_core::field_error::FieldError;
use serde_json::Value;

use crate::name::NameRule;

/// What deleting an object does to the objects it owns, when the request does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents stay, without their owner.
    Orphan,
    /// Dependents go after the owner.
    Background,
    /// Dependents go before the owner.
    Foreground,
}

/// The part of a kind that is code. Every method has a default that does nothing.
///
/// Methods see the whole object after decoding and pruning; they must be quick and pure, because a write that meets a
/// conflict runs them again.
pub trait Strategy: Send + Sync + fmt::Debug {
    /// Fills in what the author left out. Never overwrites.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Last changes before a new object is validated and stored; `metadata.uid` is set.
    fn prepare_create(&self, object: &mut Value) {
        let _ = object;
    }

    /// Last changes before a changed object is validated and stored.
    fn prepare_update(&self, old: &Value, new: &mut Value) {
        let _ = (old, new);
    }

    /// Rules beyond the schema. `old` is there for updates.
    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let _ = (new, old);
        Vec::new()
    }

    /// Which names are allowed.
    fn names(&self) -> NameRule {
        NameRule::Subdomain
    }

    /// What happens to dependents when a request does not say.
    fn propagation(&self) -> Propagation {
        Propagation::Background
    }
}

/// Nothing particular: instances of custom kinds, and kinds that are only data.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Strategy for Plain {}
