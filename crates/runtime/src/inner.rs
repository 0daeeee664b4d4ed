//! What the parts of a running runtime share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use horchestra_core::queue::Lane;
use horchestra_core::{Error, GroupKind, GroupVersionKind, Kind, Object, ObjectRef, Read, ReleaseId};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cache::Change;
use crate::caches::Caches;
use crate::controller::Controller;
use crate::informer::Listener;
use crate::interest::{Interests, Subscriber};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::router::Router;
use crate::{Cause, Note, Reaction, Target};

pub(crate) struct Inner {
    me: Weak<Inner>,
    pub(crate) router: Arc<Router>,
    pub(crate) metrics: Metrics,
    pub(crate) journal: Option<Journal>,
    caches: OnceLock<Caches>,
    interests: Mutex<Interests>,
    controllers: RwLock<HashMap<GroupKind, Arc<Controller>>>,
    releases: RwLock<HashMap<ReleaseId, Subscriber>>,
    kinds: RwLock<HashMap<GroupVersionKind, Kind>>,
    epoch: Instant,
    active: AtomicBool,
    notes: Arc<Semaphore>,
}

/// Events that are being recorded at once; what is more is not recorded.
const NOTES: usize = 64;

impl Inner {
    pub(crate) fn new(journal: Option<Journal>, active: bool) -> Arc<Self> {
        let inner = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            router: Arc::new(Router::default()),
            metrics: Metrics::new(),
            journal,
            caches: OnceLock::new(),
            interests: Mutex::default(),
            controllers: RwLock::default(),
            releases: RwLock::default(),
            kinds: RwLock::default(),
            epoch: Instant::now(),
            active: AtomicBool::new(active),
            notes: Arc::new(Semaphore::new(NOTES)),
        });
        inner.caches();
        inner
    }

    pub(crate) fn caches(&self) -> &Caches {
        self.caches.get_or_init(|| {
            let listener: Weak<dyn Listener> = self.me.clone();
            Caches::new(self.router.clone(), listener)
        })
    }

    pub(crate) fn target(&self) -> &Router {
        &self.router
    }

    pub(crate) fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether runs may start; otherwise it only watches.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::SeqCst);
    }

    /// Records an event about an object, while whoever has it to say goes on: people read events,
    /// and no run waits for that.
    pub(crate) fn note(&self, about: Object, note: Note) {
        let Ok(permit) = self.notes.clone().try_acquire_owned() else {
            tracing::debug!(object = %about.reference(), "too many events at once; one is not recorded");
            return;
        };
        let router = self.router.clone();
        tokio::spawn(async move {
            if let Err(error) = router.note(&about, note).await {
                tracing::debug!(%error, "the event could not be recorded");
            }
            drop(permit);
        });
    }

    /// The time since this runtime began.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// The moment that a time of the queue stands for.
    pub(crate) fn instant(&self, time: Duration) -> Instant {
        self.epoch + time
    }

    /// How a kind is served. What is served stays known; what is not is asked for again.
    pub(crate) async fn resolve(&self, gvk: &GroupVersionKind) -> Result<Option<Kind>, Error> {
        if let Some(kind) = self.known(gvk) {
            return Ok(Some(kind));
        }
        let kind =
            self.router.resolve(gvk).await.map_err(|e| e.into_error(format!("cannot resolve {gvk}")))?;
        if let Some(kind) = &kind {
            self.kinds.write().unwrap_or_else(PoisonError::into_inner).insert(gvk.clone(), kind.clone());
        }
        Ok(kind)
    }

    pub(crate) fn known(&self, gvk: &GroupVersionKind) -> Option<Kind> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(gvk).cloned()
    }

    /// The same read with the namespace that its object really has: none for kinds of the cluster.
    pub(crate) fn normalise(&self, read: &Read) -> Read {
        match read {
            Read::Get { kind, name, .. } if self.known(kind).is_some_and(|k| !k.namespaced) => {
                Read::Get { kind: kind.clone(), namespace: "".into(), name: name.clone() }
            }
            other => other.clone(),
        }
    }

    /// Forgets how the kinds of a group and name are served: their definition has changed.
    pub(crate) fn forget_kind(&self, kind: &GroupKind) {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).retain(|gvk, _| gvk.group_kind() != *kind);
    }

    pub(crate) fn controller(&self, kind: &GroupKind) -> Option<Arc<Controller>> {
        self.controllers.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    pub(crate) fn controllers(&self) -> Vec<Arc<Controller>> {
        self.controllers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn set_controller(
        &self,
        kind: GroupKind,
        controller: Option<Arc<Controller>>,
    ) -> Option<Arc<Controller>> {
        let mut all = self.controllers.write().unwrap_or_else(PoisonError::into_inner);
        match controller {
            Some(controller) => all.insert(kind, controller),
            None => all.remove(&kind),
        }
    }

    /// Forgets a resource that is gone.
    pub(crate) fn forget(&self, subscriber: &Subscriber) {
        self.interests().retain(subscriber, |_| false, |_, _| false);
        self.releases
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&ReleaseId::of_instance(subscriber));
    }

    /// Takes in what one of our own writes returned: reads see it from here on. Everybody else who
    /// read the object is told; the writer only if it had read it before.
    pub(crate) fn absorb(&self, object: &Object, writer: &Subscriber) {
        if let Some(change) = self.caches().absorb(object) {
            self.dispatch(&change, Some(writer));
        }
    }

    /// Takes in that an object which we deleted is gone.
    pub(crate) fn absorb_absence(&self, object: &ObjectRef, uid: &str, writer: &Subscriber) {
        if let Some(change) = self.caches().absorb_absence(object, uid) {
            self.dispatch(&change, Some(writer));
        }
    }

    fn dispatch(&self, change: &Change, writer: Option<&Subscriber>) {
        let Some(object) = change.object() else { return };
        let reference = object.reference();
        let cause = match (&change.old, &change.new) {
            (None, _) => Cause::Created(reference.clone()),
            (_, Some(_)) => Cause::Changed(reference.clone()),
            (Some(_), None) => Cause::Deleted(reference.clone()),
        };
        if reference.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
            && let Some((group, kind)) = defined(object)
        {
            self.forget_kind(&GroupKind::new(group, kind));
        }
        if let Some(controller) = self.controller(&reference.kind)
            && writer != Some(&reference)
        {
            self.note_release(&reference);
            let fresh = match (&change.old, &change.new) {
                (Some(old), Some(new)) => {
                    old.generation() != new.generation() || old.is_deleting() != new.is_deleting()
                }
                _ => true,
            };
            let lane =
                if change.old.is_none() && !controller.is_synced() { Lane::Resync } else { Lane::Change };
            controller.event(&reference, cause.clone(), lane, fresh);
        }
        for subscriber in self.owners(change) {
            if writer == Some(&subscriber) {
                continue;
            }
            let Some(controller) = self.controller(&subscriber.kind) else { continue };
            let react = match controller.reaction(&subscriber) {
                Reaction::Dynamic => true,
                Reaction::Subscription => false,
                Reaction::Standard => !controller.is_ready(&subscriber),
            };
            if react {
                controller.event(&subscriber, cause.clone(), Lane::Change, false);
            }
        }
        let affected = self.interests().affected(&reference, change);
        for subscriber in affected {
            let Some(controller) = self.controller(&subscriber.kind) else { continue };
            if controller.reaction(&subscriber) != Reaction::Standard || !controller.is_ready(&subscriber) {
                controller.event(&subscriber, cause.clone(), Lane::Change, false);
            }
        }
    }

    /// The resources whose releases the object belonged or belongs to.
    fn owners(&self, change: &Change) -> HashSet<Subscriber> {
        let releases = self.releases.read().unwrap_or_else(PoisonError::into_inner);
        let of =
            |o: &Option<Object>| o.as_ref().and_then(Object::release).and_then(|r| releases.get(r)).cloned();
        [of(&change.old), of(&change.new)].into_iter().flatten().collect()
    }

    /// Notes that what belongs to a resource's release concerns the resource.
    pub(crate) fn note_release(&self, subscriber: &Subscriber) {
        let release = ReleaseId::of_instance(subscriber);
        self.releases.write().unwrap_or_else(PoisonError::into_inner).insert(release, subscriber.clone());
    }
}

fn defined(crd: &Object) -> Option<(String, String)> {
    let value = crd.to_value();
    let text = |p: &str| value.pointer(p).and_then(serde_json::Value::as_str).map(str::to_owned);
    Some((text("/spec/group")?, text("/spec/names/kind")?))
}

impl Listener for Inner {
    fn changed(&self, _: &Kind, change: &Change) {
        self.dispatch(change, None);
    }

    fn synced(&self, kind: &Kind) {
        if let Some(controller) = self.controller(&kind.group_kind()) {
            controller.synced();
        }
    }
}
