//! Which kinds are served now.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::Value;

use super::definition;
use super::discovery::Discovery;
use super::kind::{Endpoint, GroupKind, Kind, Origin};
use crate::ApiError;
use crate::object::RevisionNumber;

/// The served kinds at one moment. Never changes.
#[derive(Debug, Default)]
pub struct Snapshot {
    kinds: Vec<Arc<Kind>>,
    by_resource: HashMap<(String, String), Arc<Kind>>,
    by_kind: HashMap<GroupKind, Arc<Kind>>,
    discovery: OnceLock<Discovery>,
}

impl Snapshot {
    fn new(mut kinds: Vec<Arc<Kind>>) -> Self {
        kinds.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural)));
        let by_resource = kinds.iter().map(|k| ((k.group.clone(), k.plural.clone()), k.clone())).collect();
        let by_kind = kinds.iter().map(|k| (k.group_kind(), k.clone())).collect();
        Self { kinds, by_resource, by_kind, discovery: OnceLock::new() }
    }

    /// All kinds, by group and plural.
    #[must_use]
    pub fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The kind with the plural `resource` in `group`.
    #[must_use]
    pub fn resource(&self, group: &str, resource: &str) -> Option<&Arc<Kind>> {
        self.by_resource.get(&(group.to_owned(), resource.to_owned()))
    }

    /// The kind called `kind` in `group`.
    #[must_use]
    pub fn kind(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.by_kind.get(&GroupKind { group: group.to_owned(), kind: kind.to_owned() })
    }

    /// What discovery answers, made on first use.
    #[must_use]
    pub(crate) fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| Discovery::new(&self.kinds))
    }
}

#[derive(Debug, Default)]
struct State {
    own: Vec<Arc<Kind>>,
    /// By name of the definition: the revision it was seen at, and its kind if that is served.
    custom: HashMap<String, (RevisionNumber, Option<Arc<Kind>>)>,
    current: Arc<Snapshot>,
}

/// The served kinds: the server's own, the embedder's, and those of definitions.
#[derive(Debug, Default)]
pub struct Registry {
    state: RwLock<State>,
}

impl Registry {
    /// With the kinds that are there from the start. Errors when two have the same names.
    pub(crate) fn new(own: Vec<Kind>) -> Result<Self, ApiError> {
        let own: Vec<Arc<Kind>> = own.into_iter().map(Arc::new).collect();
        for (index, kind) in own.iter().enumerate() {
            let before = own.get(..index).unwrap_or_default();
            if before
                .iter()
                .any(|k| k.group == kind.group && (k.plural == kind.plural || k.kind == kind.kind))
            {
                return Err(ApiError::Internal(format!(
                    "two built-in kinds are called {}.{}: register each once",
                    kind.plural, kind.group
                )));
            }
        }
        let current = Arc::new(Snapshot::new(own.clone()));
        Ok(Self { state: RwLock::new(State { own, custom: HashMap::new(), current }) })
    }

    /// The kinds as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// Takes over a definition as written at `revision`. Older news than what is known is ignored.
    pub(crate) fn install(&self, object: &Value, revision: RevisionNumber) {
        let name = crate::object::metadata_str(object, "name").to_owned();
        let kind = if definition::established(object) {
            match definition::kind(object) {
                Ok(kind) => Some(Arc::new(kind)),
                Err(errors) => {
                    tracing::error!(definition = name, ?errors, "a stored definition cannot be served");
                    None
                }
            }
        } else {
            None
        };
        self.change(name, revision, kind);
    }

    /// Forgets the definition `name`, deleted at `revision`.
    pub(crate) fn remove(&self, name: &str, revision: RevisionNumber) {
        self.change(name.to_owned(), revision, None);
    }

    fn change(&self, name: String, revision: RevisionNumber, kind: Option<Arc<Kind>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.custom.get(&name).is_some_and(|(known, _)| *known >= revision) {
            return;
        }
        state.custom.insert(name, (revision, kind));
        let custom = state.custom.values().filter_map(|(_, kind)| kind.clone());
        let all: Vec<Arc<Kind>> = state.own.iter().cloned().chain(custom).collect();
        state.current = Arc::new(Snapshot::new(all));
    }

    /// Where requests for `group`/`version`/`resource` go.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Result<Endpoint, ApiError> {
        let snapshot = self.snapshot();
        let kind = snapshot.resource(group, resource).ok_or(ApiError::UnknownPath)?;
        let index = kind.served(version).ok_or(ApiError::UnknownPath)?;
        Endpoint::new(kind.clone(), index).ok_or(ApiError::UnknownPath)
    }

    /// Where objects with this `apiVersion` and `kind` go.
    pub fn kind(&self, api_version: &str, kind: &str) -> Result<Endpoint, ApiError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let missing = || {
            ApiError::BadRequest(format!(
                "no matches for kind {kind:?} in version {api_version:?}: apply its definition first"
            ))
        };
        let snapshot = self.snapshot();
        let found = snapshot.kind(group, kind).ok_or_else(missing)?;
        let index = found.served(version).ok_or_else(missing)?;
        Endpoint::new(found.clone(), index).ok_or_else(missing)
    }

    /// Where objects of a kind are stored, whatever version is served.
    pub(crate) fn stored(kind: &Arc<Kind>) -> Option<Endpoint> {
        let index = kind.versions.iter().position(|v| v.stored)?;
        Endpoint::new(kind.clone(), index)
    }

    /// True when the kind that a key of the store belongs to is defined by `definition`.
    #[must_use]
    pub(crate) fn defined_by(kind: &Kind, name: &str) -> bool {
        matches!(&kind.origin, Origin::Custom { definition, .. } if definition == name)
    }
}
