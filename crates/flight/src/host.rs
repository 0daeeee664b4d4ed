//! The host side of a flight's reads: a cluster view that answers questions.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use horchestra_core::{Answer, Cluster, Error, GroupVersionKind, Read, ReadSet};

use crate::contract::{Host, Question, Refusal};
use crate::lookup::{answer_to_json, error_to_refusal, question_to_read};

/// What a host refuses although it has the answer.
type Guard = dyn Fn(&Read, &Answer) -> Result<(), Refusal> + Send + Sync;
/// Whether objects of a kind live in namespaces.
type Scope = dyn Fn(&GroupVersionKind) -> bool + Send + Sync;

/// Answers a flight's questions from a [`Cluster`], which records them as reads.
///
/// An answer that is not there yet ends the evaluation with [`Refusal::Pending`]: let the host
/// [`settle`](Self::settle) outside, and evaluate again with the same host.
pub struct ClusterHost {
    cluster: Cluster,
    namespace: Arc<str>,
    namespaced: Box<Scope>,
    guard: Option<Box<Guard>>,
    pending: Mutex<Option<Read>>,
    /// What had to be waited for. Kept for the evaluations after it: the watch that gave the answer
    /// may be gone by then if nobody else needs it.
    settled: Mutex<BTreeMap<Read, Answer>>,
}

impl ClusterHost {
    /// A host for the release in `namespace`; `namespaced` tells kinds of namespaces from kinds of
    /// the cluster (true for unknown ones).
    pub fn new(
        cluster: Cluster,
        namespace: impl Into<Arc<str>>,
        namespaced: impl Fn(&GroupVersionKind) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            cluster,
            namespace: namespace.into(),
            namespaced: Box::new(namespaced),
            guard: None,
            pending: Mutex::default(),
            settled: Mutex::default(),
        }
    }

    /// Lets `guard` decide about every answer before the flight sees it. The read is recorded all the
    /// same: what was forbidden may be allowed when the object changes.
    #[must_use]
    pub fn guarded(
        mut self,
        guard: impl Fn(&Read, &Answer) -> Result<(), Refusal> + Send + Sync + 'static,
    ) -> Self {
        self.guard = Some(Box::new(guard));
        self
    }

    /// Waits for the answer that the last evaluation ended for. False if it did not end for one.
    ///
    /// # Errors
    /// Those of the read.
    pub async fn settle(&self) -> Result<bool, Error> {
        let Some(read) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(false);
        };
        let answer = self.cluster.read(read.clone()).await?;
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(read, answer);
        Ok(true)
    }

    /// What has been read so far.
    pub fn reads(&self) -> ReadSet {
        self.cluster.reads()
    }

    /// The answer if it is there.
    fn poll(&self, read: &Read) -> Result<Answer, Refusal> {
        match pin!(self.cluster.read(read.clone())).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(answer)) => Ok(answer),
            Poll::Pending | Poll::Ready(Err(Error::Pending(_))) => {
                *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
                Err(Refusal::Pending)
            }
            Poll::Ready(Err(e)) => Err(error_to_refusal(&e)),
        }
    }
}

impl Host for ClusterHost {
    fn ask(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        let read = question_to_read(&question, &self.namespace, &*self.namespaced)
            .map_err(|e| error_to_refusal(&e))?;
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner).get(&read).cloned();
        let answer = match settled {
            Some(answer) => answer,
            None => self.poll(&read)?,
        };
        if let Some(guard) = &self.guard {
            guard(&read, &answer)?;
        }
        answer_to_json(&read, &answer)
    }
}

impl fmt::Debug for ClusterHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterHost")
            .field("cluster", &self.cluster)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
