//! What a plan is made of.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::{Kind, Manifest, ObjectRef};

/// What has to be done for the world to be as desired, in order.
///
/// An empty plan means that nothing has to be done; it may still wait for something.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plan {
    /// What to do now, in order. Objects that are as they should be are in it as [`Verb::Keep`].
    pub actions: Vec<Action>,
    /// What has to happen before the rest can be done, or before everything is ready, in words that name objects.
    pub waiting: Vec<String>,
    /// Owned objects that have failed for good, in words.
    pub failed: Vec<String>,
    /// Whether stages or deletions are held back until something in `waiting` happens.
    pub held: bool,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// The object.
    pub object: ObjectRef,
    /// How its kind is served.
    #[serde(skip)]
    pub kind: Kind,
    /// Its stage.
    pub stage: usize,
    /// What to do.
    #[serde(flatten)]
    pub verb: Verb,
}

/// What to do with one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum Verb {
    /// It does not exist: apply this.
    Create {
        /// What to apply.
        #[serde(skip)]
        manifest: Manifest,
    },
    /// It exists and differs: apply this.
    Patch {
        /// What to apply.
        #[serde(skip)]
        manifest: Manifest,
        /// What changes by it.
        changes: Vec<Change>,
    },
    /// It is owned and no longer desired.
    Delete {
        /// Only this incarnation of it.
        uid: String,
    },
    /// It is owned and no longer desired, and it is of a kind whose deletion takes others with it
    /// (CustomResourceDefinition, Namespace): it stays, without the mark of its owner.
    Orphan {
        /// Only this incarnation of it.
        uid: String,
        /// What to apply: the object without any field of ours.
        #[serde(skip)]
        manifest: Manifest,
    },
    /// It is as it should be.
    Keep,
}

/// One field that changes. The values of Secrets are never in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Which field, as Kubernetes writes paths.
    pub path: String,
    /// What it is, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What it will be, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

impl Plan {
    /// Whether nothing has to be done.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(|a| matches!(a.verb, Verb::Keep))
    }

    /// Whether everything desired exists and is ready, and nothing else is left.
    pub fn is_ready(&self) -> bool {
        self.is_empty() && self.waiting.is_empty() && self.failed.is_empty() && !self.held
    }

    /// The actions that write.
    pub fn writes(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|a| !matches!(a.verb, Verb::Keep))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.actions {
            writeln!(f, "{action}")?;
            if let Verb::Patch { changes, .. } = &action.verb {
                for change in changes {
                    writeln!(f, "    {change}")?;
                }
            }
        }
        for what in &self.waiting {
            writeln!(f, "… {what}")?;
        }
        for what in &self.failed {
            writeln!(f, "! {what}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, word) = match &self.verb {
            Verb::Create { .. } => ('+', "create"),
            Verb::Patch { .. } => ('~', "patch"),
            Verb::Delete { .. } => ('-', "delete"),
            Verb::Orphan { .. } => ('?', "orphan"),
            Verb::Keep => ('=', "keep"),
        };
        write!(f, "{sign} {word} {}", self.object)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, Some(to)) => write!(f, "{} = {to}", self.path),
            (Some(from), None) => write!(f, "{}: {from} is removed", self.path),
            (Some(from), Some(to)) => write!(f, "{}: {from} -> {to}", self.path),
            (None, None) => write!(f, "{} changes", self.path),
        }
    }
}
