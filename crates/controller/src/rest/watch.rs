//! Watching: what is there, then every change, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Filter, parse_revision};
use super::options::WatchOptions;
use crate::kinds::{Endpoint, Kind};
use crate::object::{Object, RevisionNumber};
use crate::store::{self, Entry, Range, Revision};
use crate::{Api, ApiError};

/// How often bookmarks are sent, at least when the store makes progress.
const BOOKMARK_EVERY: Duration = Duration::from_secs(30);
/// Objects of the initial state read at once.
const PAGE: usize = 500;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It is there, or it is new, or it began to match the selectors.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or it does not match the selectors any more.
    Deleted,
}

impl EventKind {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// What a watch yields.
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// A change, with the object after it (before it, for a deletion), at the change's revision.
    Event(EventKind, Object),
    /// Everything up to this revision has been sent.
    Bookmark {
        /// Go on from here.
        revision: RevisionNumber,
        /// The initial state is complete.
        initial_end: bool,
    },
}

/// A running watch. Dropping it ends it.
pub struct Watch {
    api: Arc<Api>,
    kind: Arc<Kind>,
    prefix: String,
    filter: Filter,
    changes: store::Watch,
    initial: Option<Initial>,
    ready: VecDeque<WatchItem>,
    bookmarks: bool,
    deadline: Option<Instant>,
    ended: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("kind", &self.kind)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The rest of the initial state.
struct Initial {
    at: RevisionNumber,
    after: Option<Arc<str>>,
    end: bool,
}

impl Api {
    /// Watches the objects of a namespace, or of all for an empty one.
    ///
    /// Errors: `Expired` when the version is compacted away, `FutureRevision`, `BadRequest`.
    pub async fn watch(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        namespace: &str,
        options: &WatchOptions,
    ) -> Result<Watch, ApiError> {
        let kind = endpoint.kind();
        let prefix = kind.namespace_prefix(if kind.namespaced() { namespace } else { "" });
        let filter = Filter::new(endpoint, &options.selection)?;
        let wanted = parse_revision(&options.resource_version)?;
        let replay = options.initial_events.unwrap_or(wanted == 0);
        if !replay && wanted > 0 {
            self.reached(wanted)?;
        }
        let current = self.store.revision().0;
        if options.initial_events == Some(true) {
            self.reached(wanted)?;
        }
        let from = if replay || wanted == 0 { current } else { wanted };
        let changes = self.store.watch(&prefix, Revision(from)).await?;
        let changes = if options.bookmarks { changes.bookmarks(BOOKMARK_EVERY) } else { changes };
        let end = options.initial_events == Some(true) && options.bookmarks;
        let now = Instant::now();
        Ok(Watch {
            api: self.clone(),
            kind: kind.clone(),
            prefix,
            filter,
            changes,
            initial: replay.then_some(Initial { at: from, after: None, end }),
            ready: VecDeque::new(),
            bookmarks: options.bookmarks,
            deadline: options.timeout.and_then(|timeout| now.checked_add(timeout)),
            ended: false,
        })
    }
}

impl Watch {
    /// The next thing that happened. `None` after the timeout and after an error.
    pub async fn next(&mut self) -> Option<Result<WatchItem, ApiError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.fill().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    /// The next item if it is there without waiting for the store.
    pub(crate) fn ready(&mut self) -> Option<WatchItem> {
        self.ready.pop_front()
    }

    async fn fill(&mut self) -> Result<(), ApiError> {
        if let Some(initial) = self.initial.take() {
            return self.fill_initial(initial).await;
        }
        let next = match self.deadline {
            None => Ok(self.changes.next().await),
            Some(deadline) => tokio::time::timeout_at(deadline, self.changes.next()).await,
        };
        match next {
            Ok(Some(Ok(item))) => self.take(item),
            Ok(Some(Err(error))) => Err(error.into()),
            Ok(None) => {
                self.ended = true;
                Ok(())
            }
            Err(_) => {
                self.ended = true;
                if self.bookmarks {
                    let revision = self.changes.delivered().0;
                    self.ready.push_back(WatchItem::Bookmark { revision, initial_end: false });
                }
                Ok(())
            }
        }
    }

    async fn fill_initial(&mut self, initial: Initial) -> Result<(), ApiError> {
        let range = Range { after: initial.after, limit: Some(PAGE), at: Some(Revision(initial.at)) };
        let page = self.api.store.range(&self.prefix, range).await?;
        let mut after = None;
        for entry in page.entries {
            let object = self.api.object(&entry)?;
            if self.filter.matches(object.value()) {
                self.ready.push_back(WatchItem::Event(EventKind::Added, object));
            }
            after = Some(entry.key);
        }
        if page.more {
            self.initial = Some(Initial { at: initial.at, after, end: initial.end });
        } else if initial.end {
            self.ready.push_back(WatchItem::Bookmark { revision: initial.at, initial_end: true });
        }
        Ok(())
    }

    fn take(&mut self, item: store::WatchItem) -> Result<(), ApiError> {
        match item {
            store::WatchItem::Progress(revision) => {
                self.ready.push_back(WatchItem::Bookmark { revision: revision.0, initial_end: false });
            }
            store::WatchItem::Events(events) => {
                for event in events.iter() {
                    let after = match &event.value {
                        Some(value) => Some(self.api.cache.decode(&event.key, value, event.revision.0)?),
                        None => None,
                    };
                    if let Some((kind, object)) =
                        self.judge(after, event.previous.as_ref(), event.revision.0)?
                    {
                        self.ready.push_back(WatchItem::Event(kind, object));
                    }
                }
            }
        }
        Ok(())
    }

    /// What a change is to someone who sees only what matches.
    fn judge(
        &self,
        after: Option<Object>,
        before: Option<&Entry>,
        revision: RevisionNumber,
    ) -> Result<Option<(EventKind, Object)>, ApiError> {
        let after_matches = after.as_ref().is_some_and(|o| self.filter.matches(o.value()));
        if self.filter.all()
            && let Some(object) = after
        {
            let kind = if before.is_some() { EventKind::Modified } else { EventKind::Added };
            return Ok(Some((kind, object)));
        }
        let before = match before {
            Some(entry) => Some(self.api.object(entry)?).filter(|o| self.filter.matches(o.value())),
            None => None,
        };
        Ok(match (before, after.filter(|_| after_matches)) {
            (None, Some(object)) => Some((EventKind::Added, object)),
            (Some(_), Some(object)) => Some((EventKind::Modified, object)),
            (Some(object), None) => Some((EventKind::Deleted, object.at(revision))),
            (None, None) => None,
        })
    }
}

/// The object of a bookmark event.
#[must_use]
pub fn bookmark(endpoint: &Endpoint, revision: RevisionNumber, initial_end: bool) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
    if initial_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    json!({"kind": endpoint.kind().kind, "apiVersion": endpoint.api_version(), "metadata": metadata})
}
