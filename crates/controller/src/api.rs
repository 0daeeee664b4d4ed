//! The server without HTTP: what requests do.

use std::sync::{Arc, PoisonError, RwLock};

use crate::ApiError;
use crate::admission::{self, Admission, AdmissionRequest};
use crate::cache::Cache;
use crate::kinds::{Endpoint, Kind, Registry, Snapshot, builtin};
use crate::object::{Object, RevisionNumber};
use crate::store::{Entry, RevisionedStore, StoreError};

/// The in-process face of the API server: the same handling of requests as over HTTP, without HTTP.
///
/// Everything that clients rely on holds here too: schemas, admission, finalizers, managedFields, optimistic
/// concurrency. Calls cost microseconds on a store in memory.
pub struct Api {
    pub(crate) store: Arc<dyn RevisionedStore>,
    pub(crate) registry: Registry,
    pub(crate) cache: Cache,
    admission: RwLock<Arc<[Arc<dyn Admission>]>>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// Over a store, with the built-in kinds and `extra` ones. Definitions in the store are served once
    /// [`load`](Self::load) has read them.
    pub fn new(store: Arc<dyn RevisionedStore>, extra: Vec<Kind>) -> Result<Self, ApiError> {
        let mut kinds = builtin::kinds();
        kinds.extend(extra);
        Ok(Self {
            store,
            registry: Registry::new(kinds)?,
            cache: Cache::default(),
            admission: RwLock::new(Arc::from(Vec::new())),
        })
    }

    /// Adds a validator of writes. It is asked from now on.
    pub fn add_admission(&self, admission: Arc<dyn Admission>) {
        let mut all = self.admission.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().cloned().chain([admission]).collect();
    }

    pub(crate) async fn admit(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let all = self.admission.read().unwrap_or_else(PoisonError::into_inner).clone();
        admission::admit(&all, request).await
    }

    /// Where requests for `group`/`version`/`resource` (plural) go.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Result<Endpoint, ApiError> {
        self.registry.resource(group, version, resource)
    }

    /// Where objects with this `apiVersion` and `kind` go.
    pub fn kind(&self, api_version: &str, kind: &str) -> Result<Endpoint, ApiError> {
        self.registry.kind(api_version, kind)
    }

    /// The kinds that are served now.
    #[must_use]
    pub fn kinds(&self) -> Arc<Snapshot> {
        self.registry.snapshot()
    }

    /// The entry of an object, or `None`.
    pub(crate) async fn entry(&self, key: &str) -> Result<Option<Entry>, ApiError> {
        Ok(self.store.get(key).await?)
    }

    pub(crate) fn object(&self, entry: &Entry) -> Result<Object, ApiError> {
        self.cache.decode(&entry.key, &entry.value, entry.modified.0)
    }

    /// The revision that everything acknowledged so far is in.
    #[must_use]
    pub fn revision(&self) -> RevisionNumber {
        self.store.revision().0
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone { .. } | StoreError::Lagged { .. } => Self::Expired(
                "The provided resource version is too old: list again and start from the version of that list".to_owned(),
            ),
            StoreError::Future { current } => Self::FutureRevision { requested: 0, current: current.0 },
            StoreError::TooLarge { .. } => Self::TooLarge(error.to_string()),
            StoreError::Closed => Self::Unavailable("the server is going away".to_owned()),
            other => Self::Internal(other.to_string()),
        }
    }
}
