//! One registered reconciler: its queue, its watch, its runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use horchestra_core::queue::{Effect, Input, Lane, Outcome, Queue, QueueOptions};
use horchestra_core::{DynReconciler, GroupKind, Kind, Object, ObjectRef};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cache::Key;
use crate::informer::Informer;
use crate::inner::Inner;
use crate::interest::Subscriber;
use crate::metrics::RunResult;
use crate::run::{self, Ended};
use crate::{Cause, Reaction, ReconcilerOptions, Scope};

/// How long to wait before a kind that is not served yet is asked for again.
const NOT_SERVED: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// What is remembered of a resource between its runs. Everything here can be lost without harm.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Whether it was ready after its last run.
    pub(crate) ready: bool,
    /// The last event that was recorded, to not repeat it.
    pub(crate) noted: Option<(String, String)>,
    /// Objects that the server writes down differently from how they were applied: what was
    /// applied, and the version that came of it.
    pub(crate) settled: Arc<Mutex<HashMap<ObjectRef, Settled>>>,
}

/// A digest of a manifest, and the resource version it led to.
pub(crate) type Settled = (u64, String);

pub(crate) struct Controller {
    inner: Weak<Inner>,
    reconciler: Arc<dyn DynReconciler>,
    kind: Kind,
    name: String,
    options: ReconcilerOptions,
    queue: Mutex<Queue<Key, Cause>>,
    wake: Notify,
    next: Mutex<Option<Duration>>,
    idle: Notify,
    informer: OnceLock<Arc<Informer>>,
    children: Mutex<Vec<Arc<Informer>>>,
    memory: Mutex<HashMap<Key, Memory>>,
    synced: AtomicBool,
    stop: CancellationToken,
}

impl Controller {
    pub(crate) fn new(
        inner: &Arc<Inner>,
        reconciler: Arc<dyn DynReconciler>,
        options: ReconcilerOptions,
    ) -> Arc<Self> {
        let kind = reconciler.kind();
        let queue = QueueOptions { concurrency: options.concurrency, ..QueueOptions::default() };
        let name = if options.name.is_empty() { kind.group_kind().to_string() } else { options.name.clone() };
        Arc::new(Self {
            inner: Arc::downgrade(inner),
            reconciler,
            kind,
            name,
            options,
            queue: Mutex::new(Queue::new(queue)),
            wake: Notify::new(),
            next: Mutex::default(),
            idle: Notify::new(),
            informer: OnceLock::new(),
            children: Mutex::default(),
            memory: Mutex::default(),
            synced: AtomicBool::new(false),
            stop: CancellationToken::new(),
        })
    }

    /// Begins to watch and to run. Only to be called once changes are dispatched to it: what the
    /// watch tells before that would be lost.
    pub(crate) fn start(self: &Arc<Self>) {
        tokio::spawn(self.clone().keep_time());
        tokio::spawn(self.clone().open_watch());
    }

    pub(crate) fn reconciler(&self) -> &dyn DynReconciler {
        &*self.reconciler
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn options(&self) -> &ReconcilerOptions {
        &self.options
    }

    pub(crate) fn subscriber(&self, key: &Key) -> Subscriber {
        ObjectRef::new(self.kind.group_kind(), key.0.clone(), key.1.clone())
    }

    pub(crate) fn instance(&self, key: &Key) -> Option<Object> {
        self.informer.get()?.get(key)
    }

    /// Which changes cause a run of a resource.
    pub(crate) fn reaction(&self, subscriber: &Subscriber) -> Reaction {
        let own = self.options.reaction_of.and_then(|of| {
            self.instance(&(subscriber.namespace.clone(), subscriber.name.clone())).and_then(|o| of(&o))
        });
        own.unwrap_or(self.options.reaction)
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    pub(crate) fn synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ready(&self, subscriber: &Subscriber) -> bool {
        self.memory(&(subscriber.namespace.clone(), subscriber.name.clone())).ready
    }

    pub(crate) fn memory(&self, key: &Key) -> Memory {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn remember(&self, key: &Key, memory: Option<Memory>) {
        let mut all = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match memory {
            Some(memory) => all.insert(key.clone(), memory),
            None => all.remove(key),
        };
    }

    /// The watches of these kinds of children, all of them complete.
    pub(crate) async fn watch_children(
        &self,
        inner: &Inner,
        kinds: &[Kind],
    ) -> Result<Vec<Arc<Informer>>, String> {
        let mut found = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let held = {
                let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
                match children.iter().find(|i| i.kind.gvk == kind.gvk) {
                    Some(informer) => informer.clone(),
                    None => {
                        let informer = inner.caches().hold(kind, &Scope::All);
                        children.push(informer.clone());
                        informer
                    }
                }
            };
            if !held.is_synced() && tokio::time::timeout(Duration::from_secs(10), held.wait()).await.is_err()
            {
                return Err(format!(
                    "cannot list {kind}: {}",
                    held.problem().unwrap_or_else(|| "no answer".into())
                ));
            }
            found.push(held);
        }
        Ok(found)
    }

    /// Something may have to be done about a resource.
    pub(crate) fn event(self: &Arc<Self>, resource: &ObjectRef, cause: Cause, lane: Lane, fresh: bool) {
        let Some(inner) = self.inner.upgrade() else { return };
        // On standby nothing is kept: everything is run when it ends.
        if !inner.is_active() {
            return;
        }
        let key = (resource.namespace.clone(), resource.name.clone());
        self.handle(Input::Event { key, cause, lane, fresh });
        inner.metrics.added(&self.name, self.depth());
    }

    /// Runs every resource that there is.
    pub(crate) fn run_all(self: &Arc<Self>, inner: &Inner) {
        let Some(informer) = self.informer.get() else { return };
        for object in informer.select(|_| true) {
            let reference = object.reference();
            inner.note_release(&reference);
            self.event(&reference, Cause::Created(reference.clone()), Lane::Resync, true);
        }
    }

    /// Stops starting runs.
    pub(crate) fn cancel(&self) {
        self.stop.cancel();
    }

    /// Stops starting runs and waits for those that run, for as long as is given.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.stop.cancel();
        self.drain(patience).await;
    }

    /// Waits for the runs that run.
    pub(crate) async fn drain(&self, patience: Duration) {
        let ended = async {
            loop {
                let idle = self.idle.notified();
                if self.queue().running() == 0 {
                    break;
                }
                idle.await;
            }
        };
        if tokio::time::timeout(patience, ended).await.is_err() {
            tracing::warn!(controller = self.name, "runs were still going on when it was stopped");
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue<Key, Cause>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn depth(&self) -> usize {
        self.queue().depth()
    }

    fn handle(self: &Arc<Self>, input: Input<Key, Cause>) {
        let Some(inner) = self.inner.upgrade() else { return };
        if self.stop.is_cancelled() && !matches!(input, Input::Done { .. }) {
            return;
        }
        for effect in self.advance(&inner, input) {
            let Effect::Start { key, causes, failures, waited } = effect else { continue };
            if self.stop.is_cancelled() || !inner.is_active() {
                self.queue().handle(inner.now(), Input::Done { key, outcome: Outcome::Gone });
                continue;
            }
            inner.metrics.started(&self.name, waited, self.options.concurrency);
            tokio::spawn(self.clone().run(inner.clone(), key, causes.list, failures));
        }
    }

    /// Tells the queue, and notes when it wants to hear again while nobody else can tell it
    /// anything: an older wish must never replace a newer one.
    fn advance(&self, inner: &Inner, input: Input<Key, Cause>) -> Vec<Effect<Key, Cause>> {
        let mut queue = self.queue();
        let effects = queue.handle(inner.now(), input);
        for effect in &effects {
            if let Effect::WakeAt(time) = effect {
                let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
                if *next != Some(*time) {
                    *next = Some(*time);
                    self.wake.notify_one();
                }
            }
        }
        effects
    }

    async fn run(self: Arc<Self>, inner: Arc<Inner>, key: Key, causes: Vec<Cause>, failures: u32) {
        let started = tokio::time::Instant::now();
        let ended = run::run(&inner, &self, &key, &causes, failures).await;
        let (outcome, result) = match ended {
            Ended::Gone => (Outcome::Gone, RunResult::Success),
            Ended::Done { wake: None } => (Outcome::Success { wake: None }, RunResult::Success),
            Ended::Done { wake: Some(after) } => {
                (Outcome::Success { wake: Some(inner.now().saturating_add(after)) }, RunResult::Waiting)
            }
            Ended::Failed { retry: true, result } => (Outcome::Retry, result),
            Ended::Failed { retry: false, result } => (Outcome::Stuck, result),
        };
        inner.metrics.ended(&self.name, started.elapsed(), result);
        self.handle(Input::Done { key, outcome });
        inner.metrics.depth(&self.name, self.depth());
        self.idle.notify_waiters();
    }

    /// Tells the queue when its time has come.
    async fn keep_time(self: Arc<Self>) {
        loop {
            let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(inner) = self.inner.upgrade() else { return };
            let due = next.map(|t| inner.instant(t));
            drop(inner);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = async { match due { Some(at) => tokio::time::sleep_until(at).await, None => std::future::pending().await } } => {
                    self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
                    self.handle(Input::Tick);
                }
            }
        }
    }

    /// Starts the watch of its kind as soon as the kind is served.
    async fn open_watch(self: Arc<Self>) {
        let mut wait = NOT_SERVED.0;
        loop {
            let Some(inner) = self.inner.upgrade() else { return };
            match inner.resolve(&self.kind.gvk).await {
                Ok(Some(kind)) => {
                    let informer = inner.caches().hold(&kind, &Scope::All);
                    // Only this task sets it.
                    let _ = self.informer.set(informer.clone());
                    if informer.is_synced() {
                        self.synced();
                    }
                    // What the watch has told already: somebody else may have opened it, and a run
                    // before this moment found nothing.
                    self.run_all(&inner);
                    return;
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(controller = self.name, %error, "its kind cannot be resolved"),
            }
            drop(inner);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(NOT_SERVED.1),
            }
        }
    }

    /// How many resources it knows.
    pub(crate) fn len(&self) -> usize {
        self.informer.get().map_or(0, |i| i.len())
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        self.kind.group_kind()
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controller({}, {} resources)", self.name, self.len())
    }
}
