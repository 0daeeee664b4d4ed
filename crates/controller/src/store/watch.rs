use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::hub::{Hub, Watcher};
use super::{Event, Revision, StoreError};

/// What a watch delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchItem {
    /// The events of one commit below the prefix; never empty.
    Events(Arc<[Event]>),
    /// Every event up to this revision was delivered to this watch before.
    Progress(Revision),
}

/// Events below a prefix, from a revision on. Also a [`Stream`].
///
/// It has no buffer: what is not fetched stays in the store's log, whose bounds hold however many watches are slow. One that
/// is overtaken by the compaction of the log gets [`StoreError::Lagged`] and ends. So a watch that falls behind
/// is never starved of single events, and never silently skips any.
#[derive(Debug)]
pub struct Watch {
    hub: Arc<Hub>,
    watcher: Arc<Watcher>,
    bookmarks: Option<Interval>,
    /// What the consumer knows of already.
    reported: Revision,
    ended: bool,
}

impl Watch {
    pub(super) fn new(hub: Arc<Hub>, watcher: Arc<Watcher>, from: Revision) -> Self {
        Watch { hub, watcher, bookmarks: None, reported: from, ended: false }
    }

    /// Also delivers [`WatchItem::Progress`], at most once in `every`, when everything is delivered and the store has moved on
    /// by commits that this watch does not see. Needs a tokio runtime with time; a zero duration counts as one millisecond.
    #[must_use]
    pub fn bookmarks(mut self, every: Duration) -> Self {
        let every = every.max(Duration::from_millis(1));
        let mut interval = tokio::time::interval_at(Instant::now() + every, every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.bookmarks = Some(interval);
        self
    }

    /// The revision up to which every event was delivered. May be sent to a client as a bookmark once all that this watch gave
    /// before has been sent to it.
    #[must_use]
    pub fn delivered(&self) -> Revision {
        // The lock keeps a commit from coming between the two reads: progress never runs ahead of events.
        let inner = self.hub.read();
        match self.watcher.behind.load(Ordering::Acquire) {
            0 => inner.state.revision(),
            behind => Revision(behind - 1),
        }
    }

    /// The next item; waits for it. `None` after an error.
    pub async fn next(&mut self) -> Option<Result<WatchItem, StoreError>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<WatchItem, StoreError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // Before the look: what comes after it wakes.
        self.watcher.waker.register(context.waker());
        match self.take() {
            Ok(Some(item)) => return Poll::Ready(Some(Ok(item))),
            Ok(None) => {}
            Err(error) => {
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
        while let Some(bookmarks) = &mut self.bookmarks
            && bookmarks.poll_tick(context).is_ready()
        {
            let inner = self.hub.read();
            if self.watcher.behind.load(Ordering::Acquire) == 0 && inner.state.revision() > self.reported {
                self.reported = inner.state.revision();
                return Poll::Ready(Some(Ok(WatchItem::Progress(self.reported))));
            }
        }
        Poll::Pending
    }

    fn take(&mut self) -> Result<Option<WatchItem>, StoreError> {
        let inner = self.hub.read();
        let behind = Revision(self.watcher.behind.load(Ordering::Acquire));
        if behind == Revision::ZERO {
            return if inner.closed { Err(StoreError::Closed) } else { Ok(None) };
        }
        let compacted = inner.state.compacted();
        let lagged = StoreError::Lagged { behind, compacted };
        if behind <= compacted {
            return Err(lagged);
        }
        let prefix = &self.watcher.prefix;
        let commit = inner.state.commits_after(Revision(behind.0 - 1)).next().ok_or(lagged)?;
        let next = inner.state.next_touching(behind, prefix).map_or(0, |commit| commit.revision.0);
        self.watcher.behind.store(next, Ordering::Release);
        self.reported = behind;
        Ok(Some(WatchItem::Events(commit.below(prefix))))
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem, StoreError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.unwatch(&self.watcher);
    }
}
