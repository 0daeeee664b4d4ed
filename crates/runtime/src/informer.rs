//! One watch, kept alive: lists, follows, resumes, lists again.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::StreamExt;
use horchestra_core::{Kind, Object, ReleaseId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::cache::{Cache, Change, Key, key_of};
use crate::{Revision, Scope, Target, TargetError, WatchEvent};

/// How long a broken watch waits before it is tried again: from the first of these to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// Told of every change of an object, in order.
pub(crate) trait Listener: Send + Sync {
    fn changed(&self, kind: &Kind, change: &Change);
    /// The first listing of this informer is complete.
    fn synced(&self, kind: &Kind);
}

/// The objects of a kind in a scope, up to date. The watch ends when this is dropped.
pub(crate) struct Informer {
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    kind: Kind,
    scope: Scope,
    cache: RwLock<Cache>,
    synced: watch::Sender<Option<Result<(), String>>>,
    listener: Weak<dyn Listener>,
}

impl Informer {
    pub(crate) fn start(
        kind: Kind,
        scope: Scope,
        target: Arc<dyn Target>,
        listener: Weak<dyn Listener>,
    ) -> Arc<Self> {
        let shared = Arc::new(Shared {
            kind: kind.clone(),
            scope: scope.clone(),
            cache: RwLock::default(),
            synced: watch::Sender::new(None),
            listener,
        });
        let task = tokio::spawn(follow(shared.clone(), target)).abort_handle();
        Arc::new(Self { kind, scope, shared, task })
    }

    /// Waits for the first complete listing.
    pub(crate) async fn wait(&self) {
        let mut synced = self.shared.synced.subscribe();
        // The sender lives in `shared`, so this only ends by the condition.
        let _ = synced.wait_for(|s| matches!(s, Some(Ok(())))).await;
    }

    /// Why there is no complete listing yet, if there has been an attempt.
    pub(crate) fn problem(&self) -> Option<String> {
        self.shared.synced.borrow().as_ref().and_then(|r| r.clone().err())
    }

    pub(crate) fn is_synced(&self) -> bool {
        matches!(*self.shared.synced.borrow(), Some(Ok(())))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        self.read(|c| c.get(key).cloned())
    }

    pub(crate) fn of_release(&self, release: &ReleaseId) -> Vec<Object> {
        self.read(|c| c.of_release(release))
    }

    pub(crate) fn select(&self, matches: impl Fn(&Object) -> bool) -> Vec<Object> {
        let mut found: Vec<Object> = self.read(|c| c.iter().filter(|o| matches(o)).cloned().collect());
        found.sort_by_key(key_of);
        found
    }

    pub(crate) fn len(&self) -> usize {
        self.read(Cache::len)
    }

    /// Takes in what a write of our own returned, so that reads are never older than it.
    pub(crate) fn absorb(&self, object: &Object) -> Option<Change> {
        self.shared.write(|c| c.absorb(object.clone()))
    }

    /// Takes in that an object is gone.
    pub(crate) fn absorb_absence(&self, key: &Key, uid: &str) -> Option<Change> {
        self.shared.write(|c| c.remove(key, uid))
    }

    fn read<T>(&self, f: impl FnOnce(&Cache) -> T) -> T {
        f(&self.shared.cache.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Informer({} in {:?}, {} objects)", self.kind, self.scope, self.len())
    }
}

impl Shared {
    fn write<T>(&self, f: impl FnOnce(&mut Cache) -> T) -> T {
        f(&mut self.cache.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, change: Option<Change>) {
        if let (Some(change), Some(listener)) = (change, self.listener.upgrade()) {
            listener.changed(&self.kind, &change);
        }
    }
}

async fn follow(shared: Arc<Shared>, target: Arc<dyn Target>) {
    let mut wait = RETRY.0;
    let mut position: Option<Revision> = None;
    loop {
        let result = match position.take() {
            None => list(&shared, &*target).await,
            Some(from) => watch_from(&shared, &*target, from).await,
        };
        match result {
            Ok(next) => {
                position = next;
                wait = RETRY.0;
            }
            Err(error) => {
                tracing::debug!(kind = %shared.kind, %error, "the watch broke; listing again");
                let text = error.to_string();
                shared.synced.send_if_modified(|s| match s {
                    Some(Ok(())) => false,
                    other => {
                        *other = Some(Err(text));
                        true
                    }
                });
                let asked = match error {
                    TargetError::Unavailable { retry_after, .. } => retry_after.unwrap_or_default(),
                    _ => Duration::ZERO,
                };
                tokio::time::sleep(wait.max(asked)).await;
                wait = (wait * 2).min(RETRY.1);
            }
        }
    }
}

async fn list(shared: &Shared, target: &dyn Target) -> Result<Option<Revision>, TargetError> {
    let listing = target.list(&shared.kind, &shared.scope).await?;
    // The cache changes from one complete state to the next; nobody sees half a listing.
    let changes = shared.write(|c| c.replace(listing.objects, &shared.scope));
    let first = !matches!(*shared.synced.borrow(), Some(Ok(())));
    shared.synced.send_replace(Some(Ok(())));
    for change in changes {
        shared.tell(Some(change));
    }
    if let (true, Some(listener)) = (first, shared.listener.upgrade()) {
        listener.synced(&shared.kind);
    }
    Ok(Some(listing.revision))
}

/// Follows a watch to its end. Returns where to resume, or nothing if it has to list again.
async fn watch_from(
    shared: &Shared,
    target: &dyn Target,
    from: Revision,
) -> Result<Option<Revision>, TargetError> {
    let mut position = from;
    let mut stream = match target.watch(&shared.kind, &shared.scope, &position).await {
        Err(TargetError::Gone(_)) => return Ok(None),
        other => other?,
    };
    let started = tokio::time::Instant::now();
    while let Some(event) = stream.next().await {
        match event {
            Ok(WatchEvent::Applied(object)) => {
                position = Revision(object.resource_version().to_owned());
                shared.tell(shared.write(|c| c.put(object)));
            }
            Ok(WatchEvent::Deleted(object)) => {
                position = Revision(object.resource_version().to_owned());
                shared.tell(shared.write(|c| c.bury(&object)));
            }
            Ok(WatchEvent::Bookmark(revision)) => position = revision,
            Err(TargetError::Gone(_)) => return Ok(None),
            Err(error) => {
                tracing::debug!(kind = %shared.kind, %error, "the watch was cut; resuming");
                break;
            }
        }
    }
    // A server that accepts watches and ends them at once must not be asked in a tight loop.
    if started.elapsed() < RETRY.0 {
        tokio::time::sleep(RETRY.0).await;
    }
    Ok(Some(position))
}
