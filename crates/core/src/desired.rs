//! The answer of a reconciler: what should exist right now.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::manifest::status_map;
use crate::{Condition, Error, Manifest, Resource, Result};

/// What should exist right now, as far as a resource is concerned.
///
/// Resources in stages (a stage is applied when everything in the stages before it is ready), the
/// status of the resource itself, and conditions. Whatever an earlier answer had and this one does
/// not is removed; an answer with nothing in it removes nothing unless it is
/// [`DesiredState::nothing`], since forgetting to add things is not the same as wanting nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DesiredState {
    stages: Vec<Vec<Manifest>>,
    status: Option<Map<String, Value>>,
    conditions: Vec<Condition>,
    waiting: Vec<String>,
    nothing: bool,
    problem: Option<Error>,
}

/// As data for people and journals: what is not there is left out.
impl Serialize for DesiredState {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = s.serialize_map(None)?;
        match self.extent() {
            Extent::Nothing => map.serialize_entry("nothing", &true)?,
            Extent::Exactly => map.serialize_entry("stages", &self.stages)?,
            Extent::Unsaid => {}
        }
        if let Some(status) = &self.status {
            map.serialize_entry("status", status)?;
        }
        if !self.conditions.is_empty() {
            map.serialize_entry("conditions", &self.conditions)?;
        }
        if !self.waiting.is_empty() {
            map.serialize_entry("waiting", &self.waiting)?;
        }
        map.end()
    }
}

/// What an answer says about resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// These resources and no others.
    Exactly,
    /// Nothing at all: everything is to be removed.
    Nothing,
    /// It says nothing about resources: those that exist stay as they are.
    Unsaid,
}

impl DesiredState {
    /// An answer to add to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing should exist: everything that was created earlier is removed.
    pub fn nothing() -> Self {
        Self { nothing: true, ..Self::default() }
    }

    /// Adds a resource to the current stage.
    #[must_use]
    pub fn with<T: Resource>(self, resource: &T) -> Self {
        let manifest = Manifest::from_resource(resource);
        self.push(manifest)
    }

    /// Adds several resources of one type to the current stage.
    #[must_use]
    pub fn with_all<'a, T: Resource>(self, resources: impl IntoIterator<Item = &'a T>) -> Self {
        resources.into_iter().fold(self, Self::with)
    }

    /// Adds an object as a tree to the current stage.
    #[must_use]
    pub fn with_value(self, value: Value) -> Self {
        self.push(Manifest::new(value))
    }

    /// Adds a checked object to the current stage.
    #[must_use]
    pub fn with_manifest(self, manifest: Manifest) -> Self {
        self.push(Ok(manifest))
    }

    fn push(mut self, manifest: Result<Manifest>) -> Self {
        match manifest {
            Ok(manifest) => match self.stages.last_mut() {
                Some(stage) => stage.push(manifest),
                None => self.stages.push(vec![manifest]),
            },
            Err(e) => self.problem = self.problem.or(Some(e)),
        }
        self
    }

    /// Ends the current stage: what is added from here on waits until everything before is ready.
    #[must_use]
    pub fn then(mut self) -> Self {
        if self.stages.last().is_some_and(|stage| !stage.is_empty()) {
            self.stages.push(Vec::new());
        }
        self
    }

    /// Sets the status of the resource itself. Its `conditions`, if it has any, are merged by type
    /// with those that stand there; everything else is replaced.
    #[must_use]
    pub fn status(mut self, status: impl Serialize) -> Self {
        match serde_json::to_value(status).map_err(Error::from).and_then(status_map) {
            Ok(map) => self.status = Some(map),
            Err(e) => self.problem = self.problem.or(Some(e)),
        }
        self
    }

    /// Adds a condition to the status of the resource itself.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.conditions.retain(|c| c.type_ != condition.type_);
        self.conditions.push(condition);
        self
    }

    /// Says what this answer is waiting for. The resource is not ready while something is.
    #[must_use]
    pub fn waiting_for(mut self, what: impl Into<String>) -> Self {
        self.waiting.push(what.into());
        self
    }

    /// Checks the whole: the first thing that could not be added, or an answer that says nothing.
    pub fn checked(mut self) -> Result<Self> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.stages.retain(|stage| !stage.is_empty());
        if self.nothing && !self.stages.is_empty() {
            return Err(Error::invalid(
                "desired state",
                "was said to be nothing and then had resources added; use DesiredState::new()",
            ));
        }
        if !self.nothing
            && self.stages.is_empty()
            && self.status.is_none()
            && self.conditions.is_empty()
            && self.waiting.is_empty()
        {
            return Err(Error::invalid(
                "desired state",
                "is empty, which would remove everything; if that is meant, return DesiredState::nothing(), \
                 if only the status is known yet, set it",
            ));
        }
        Ok(self)
    }

    /// What it says about resources.
    pub fn extent(&self) -> Extent {
        match (self.nothing, self.stages.iter().all(Vec::is_empty)) {
            (true, _) => Extent::Nothing,
            (false, true) => Extent::Unsaid,
            (false, false) => Extent::Exactly,
        }
    }

    /// The stages, each with at least one resource once it is [`checked`](Self::checked).
    pub fn stages(&self) -> &[Vec<Manifest>] {
        &self.stages
    }

    /// All resources in order.
    pub fn resources(&self) -> impl Iterator<Item = &Manifest> {
        self.stages.iter().flatten()
    }

    /// All resources in order, to change.
    pub fn resources_mut(&mut self) -> impl Iterator<Item = &mut Manifest> {
        self.stages.iter_mut().flatten()
    }

    /// The status of the resource itself.
    pub fn own_status(&self) -> Option<&Map<String, Value>> {
        self.status.as_ref()
    }

    /// The conditions that were added.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// What it is waiting for.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// The resource of this type and name, if it is wanted.
    pub fn find<T: Resource>(&self, name: &str) -> Option<T> {
        let kind = crate::GroupVersionKind::of::<T>().group_kind();
        self.resources()
            .find(|m| m.name() == name && m.gvk().group_kind() == kind)
            .and_then(|m| serde_json::from_value(m.value().clone()).ok())
    }
}
