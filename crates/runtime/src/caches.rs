//! The watches of a process: one for each kind and scope, shared by everybody who needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use horchestra_core::{GroupKind, Kind, Object, ObjectRef, ReleaseId};

use crate::cache::{Change, Key};
use crate::informer::{Informer, Listener};
use crate::{Scope, Target};

/// Hands out watches. A watch lives as long as somebody holds it.
pub(crate) struct Caches {
    target: Arc<dyn Target>,
    listener: Weak<dyn Listener>,
    informers: Mutex<HashMap<GroupKind, Vec<Weak<Informer>>>>,
}

impl Caches {
    pub(crate) fn new(target: Arc<dyn Target>, listener: Weak<dyn Listener>) -> Self {
        Self { target, listener, informers: Mutex::default() }
    }

    /// The watch that covers a scope: a wider one that is complete already, else this very one.
    pub(crate) fn hold(&self, kind: &Kind, scope: &Scope) -> Arc<Informer> {
        let mut all = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(kind.group_kind()).or_default();
        known.retain(|w| w.strong_count() > 0);
        let live: Vec<Arc<Informer>> =
            known.iter().filter_map(Weak::upgrade).filter(|i| i.kind.gvk == kind.gvk).collect();
        let exact = live.iter().find(|i| i.scope == *scope);
        let wider = live.iter().find(|i| i.scope.covers(scope) && i.is_synced());
        if let Some(found) = wider.or(exact) {
            return found.clone();
        }
        let new = Informer::start(kind.clone(), scope.clone(), self.target.clone(), self.listener.clone());
        known.push(Arc::downgrade(&new));
        new
    }

    /// All running watches of a kind.
    fn of(&self, kind: &GroupKind) -> Vec<Arc<Informer>> {
        let all = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(kind).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// How many watches run.
    pub(crate) fn len(&self) -> usize {
        let all = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().flatten().filter(|w| w.strong_count() > 0).count()
    }

    /// Takes in the result of a write.
    pub(crate) fn absorb(&self, object: &Object) -> Option<Change> {
        let mut change = None;
        for informer in self.of(&object.group_kind()) {
            if informer.kind.gvk == object.gvk() && informer.scope.contains(object.namespace(), object.name())
            {
                change = informer.absorb(object).or(change);
            }
        }
        change
    }

    /// Takes in that an object is gone.
    pub(crate) fn absorb_absence(&self, object: &ObjectRef, uid: &str) -> Option<Change> {
        let key: Key = (object.namespace.clone(), object.name.clone());
        // Every watch has to take it in; they all report the same change.
        let mut change = None;
        for informer in self.of(&object.kind) {
            change = informer.absorb_absence(&key, uid).or(change);
        }
        change
    }

    /// Everything that a release owns, as far as its kinds are watched as a whole.
    pub(crate) fn owned(&self, informers: &[Arc<Informer>], release: &ReleaseId) -> Vec<(Kind, Object)> {
        informers
            .iter()
            .flat_map(|i| i.of_release(release).into_iter().map(|o| (i.kind.clone(), o)))
            .collect()
    }
}
