use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::batch::Batch;
use super::disk::Database;
use super::hub::Hub;
use super::transaction::Transaction;
use super::{Revision, StoreError};

/// The most jobs of one group. A group takes one sync whatever its size; larger ones only hold up their first members.
const MAX_GROUP_JOBS: usize = 512;
/// The most bytes of one group, except for its last job.
const MAX_GROUP_BYTES: usize = 16 * 1024 * 1024;

/// What the writer is asked to do.
pub(super) enum Job {
    Write {
        transaction: Transaction,
        reply: oneshot::Sender<Result<Revision, StoreError>>,
        permit: OwnedSemaphorePermit,
    },
    Compact {
        to: Revision,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// An answer that is given once the group is durable and visible.
enum Answer {
    Write(oneshot::Sender<Result<Revision, StoreError>>, Result<Revision, StoreError>, OwnedSemaphorePermit),
    Compact(oneshot::Sender<Result<(), StoreError>>, Result<(), StoreError>),
}

/// Commits in groups until nobody can send jobs any more: what queued while the last sync ran is the next group. A single
/// writer never waits for company.
pub(super) fn run(hub: &Hub, database: &Database, mut jobs: mpsc::UnboundedReceiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let group = gather(first, &mut jobs);
        let (answers, batch) = stage(hub, group);
        let committed = if batch.is_empty() { Ok(()) } else { database.commit(&batch) };
        if committed.is_ok() {
            hub.publish(&batch);
        }
        for answer in answers {
            answer.give(&committed);
        }
    }
}

fn gather(first: Job, jobs: &mut mpsc::UnboundedReceiver<Job>) -> Vec<Job> {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while group.len() < MAX_GROUP_JOBS
        && bytes < MAX_GROUP_BYTES
        && let Ok(job) = jobs.try_recv()
    {
        bytes += job.bytes();
        group.push(job);
    }
    group
}

fn stage(hub: &Hub, group: Vec<Job>) -> (Vec<Answer>, Batch) {
    let now = SystemTime::now();
    hub.stage(|mut stage| {
        let answers = group
            .into_iter()
            .map(|job| match job {
                Job::Write { transaction, reply, permit } => {
                    Answer::Write(reply, stage.write(transaction, now), permit)
                }
                Job::Compact { to, reply } => Answer::Compact(reply, stage.compact(to)),
            })
            .collect();
        (answers, stage.finish(now))
    })
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Job::Write { transaction, .. } => transaction.bytes(),
            Job::Compact { .. } => 0,
        }
    }
}

impl Answer {
    /// If the group failed, also what was staged as a conflict fails with it: it may have been one with a write that failed.
    /// Nobody may be listening any more.
    fn give(self, committed: &Result<(), StoreError>) {
        match self {
            Answer::Write(reply, result, permit) => {
                drop(permit);
                let _ = reply.send(committed.clone().and(result));
            }
            Answer::Compact(reply, result) => {
                let _ = reply.send(committed.clone().and(result));
            }
        }
    }
}

/// Starts the writer's thread, which owns the queue's end. However it ends, the hub is closed then.
pub(super) fn start(
    hub: Arc<Hub>,
    database: Arc<Database>,
    jobs: mpsc::UnboundedReceiver<Job>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("store-writer".into()).spawn(move || {
        let closes = CloseOnEnd(hub);
        run(&closes.0, &database, jobs);
    })
}

struct CloseOnEnd(Arc<Hub>);

impl Drop for CloseOnEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}
