//! Decoded objects, shared among all who read them.
//!
//! A writer leaves what it wrote here, so that watchers of the write need not decode it. It is only a
//! saving: what is not here is decoded from the store's bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::ApiError;
use crate::object::{Object, RevisionNumber};

/// Most objects kept.
const MAX_OBJECTS: usize = 1024;

#[derive(Debug, Default)]
struct Inner {
    objects: HashMap<Arc<str>, Object>,
    /// Keys in the order they came in; a key is in it once.
    order: VecDeque<Arc<str>>,
}

/// The newest decoded form of the objects touched last.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Inner>);

impl Cache {
    /// Keeps `object`, unless something newer is there.
    pub(crate) fn put(&self, object: &Object) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match inner.objects.get_mut(object.key()) {
            Some(known) if known.revision() >= object.revision() => {}
            Some(known) => *known = object.clone(),
            None => {
                if inner.order.len() >= MAX_OBJECTS
                    && let Some(oldest) = inner.order.pop_front()
                {
                    inner.objects.remove(&oldest);
                }
                inner.order.push_back(object.key().clone());
                inner.objects.insert(object.key().clone(), object.clone());
            }
        }
    }

    /// The object that `stored` under `key` at `revision` is.
    pub(crate) fn decode(
        &self,
        key: &Arc<str>,
        stored: &Bytes,
        revision: RevisionNumber,
    ) -> Result<Object, ApiError> {
        {
            let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = inner.objects.get(key).filter(|o| o.revision() == revision) {
                return Ok(known.clone());
            }
        }
        let object = Object::decode(key, stored.clone(), revision)?;
        self.put(&object);
        Ok(object)
    }
}
