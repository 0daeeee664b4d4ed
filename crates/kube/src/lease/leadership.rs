//! Taking and keeping the lead.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use horchestra_core::{GroupVersionKind, Kind};
use horchestra_runtime::{Target, TargetError};
use kube_core::params::PostParams;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Timing;
use super::election::{Election, Record, Step};
use crate::KubeTarget;
use crate::error::of_building;
use crate::path::{collection, segment};

/// Which Lease is held, and by whom.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease: one for each set of processes of which one leads.
    pub name: String,
    /// The name of this process, different from all others: a pod's name.
    pub identity: String,
    /// How fast a leader is replaced.
    pub timing: Timing,
}

impl LeaseOptions {
    /// With the usual timing.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            timing: Timing::default(),
        }
    }
}

/// The lead. It is kept in the background until this is dropped or [released](Self::release).
pub struct Leadership {
    lost: CancellationToken,
    stop: CancellationToken,
    task: Option<JoinHandle<Candidate>>,
}

impl Leadership {
    /// Ends when the lead is lost: then nothing may be written any more. Others take over five
    /// seconds later with the usual timing.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether the lead is still held.
    pub fn is_held(&self) -> bool {
        !self.lost.is_cancelled()
    }

    /// Gives up the lead, so that another process need not wait. Call it when nothing is written any more.
    pub async fn release(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take()
            && let Ok(candidate) = task.await
            && !self.lost.is_cancelled()
        {
            candidate.leave().await;
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leadership({})", if self.is_held() { "held" } else { "lost" })
    }
}

impl KubeTarget {
    /// Waits until this process leads. A server that does not answer is asked again.
    ///
    /// # Errors
    /// Where it never can: a name that is none, or missing rights (get, create and update of
    /// `leases` in `coordination.k8s.io`).
    pub async fn lead(&self, options: LeaseOptions) -> Result<Leadership, TargetError> {
        let mut candidate = Candidate::new(self.clone(), options);
        loop {
            match candidate.attempt().await {
                Ok(true) => break,
                Ok(false) => {}
                Err(e @ (TargetError::Forbidden(_) | TargetError::Invalid(_))) => return Err(e),
                Err(error) => tracing::debug!(%error, "the lease cannot be read or written"),
            }
            sleep(candidate.pause()).await;
        }
        tracing::info!(lease = candidate.options.name, identity = candidate.options.identity, "leads");
        let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(candidate.keep(lost.clone(), stop.clone()));
        Ok(Leadership { lost, stop, task: Some(task) })
    }
}

struct Candidate {
    target: KubeTarget,
    options: LeaseOptions,
    election: Election,
    /// The Lease as it was read last.
    lease: Option<Value>,
    chance: RandomState,
    looks: u64,
    epoch: Instant,
}

impl Candidate {
    fn new(target: KubeTarget, options: LeaseOptions) -> Self {
        Self {
            election: Election::new(options.identity.clone(), options.timing),
            target,
            options,
            lease: None,
            chance: RandomState::new(),
            looks: 0,
            epoch: Instant::now(),
        }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn pause(&mut self) -> Duration {
        let mut hasher = self.chance.build_hasher();
        hasher.write_u64(self.looks);
        self.looks = self.looks.wrapping_add(1);
        let share = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
        self.options.timing.retry(f64::from(share) / f64::from(u32::MAX))
    }

    /// One look, and a write if it is due. Whether this process leads after it.
    async fn attempt(&mut self) -> Result<bool, TargetError> {
        let kind = lease_kind();
        let found = self.target.get(&kind, &self.options.namespace, &self.options.name).await?;
        self.lease = found.map(|o| o.to_value());
        let record = self.lease.as_ref().map(record);
        let asked = self.now();
        match self.election.look(asked, record) {
            Step::Wait => return Ok(false),
            Step::Create => self.write(0, true).await?,
            Step::Take { transitions, anew } => self.write(transitions, anew).await?,
        }
        self.election.took(asked);
        Ok(true)
    }

    async fn write(&self, transitions: i32, anew: bool) -> Result<(), TargetError> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let before = self.lease.as_ref();
        let field = |path| before.and_then(|lease: &Value| lease.pointer(path)).cloned();
        let acquired = if anew { None } else { field("/spec/acquireTime") };
        let spec = json!({
            "holderIdentity": self.options.identity,
            "leaseDurationSeconds": self.options.timing.duration().as_secs(),
            "acquireTime": acquired.unwrap_or_else(|| now.as_str().into()),
            "renewTime": now,
            "leaseTransitions": transitions,
        });
        self.store(spec).await
    }

    /// Creates the Lease, or replaces it at the version that was read.
    async fn store(&self, spec: Value) -> Result<(), TargetError> {
        let mut lease = self.lease.clone().unwrap_or_else(|| {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.options.name, "namespace": self.options.namespace}})
        });
        if let Some(map) = lease.as_object_mut() {
            map.insert("spec".to_owned(), spec);
        }
        let body = serde_json::to_vec(&lease).map_err(|e| TargetError::Invalid(e.to_string()))?;
        let place = collection(&lease_kind(), &self.options.namespace)?;
        let name = segment("name", &self.options.name)?;
        let params = PostParams::default();
        let request = match &self.lease {
            Some(_) => place.replace(name, &params, body),
            None => place.create(&params, body),
        };
        self.target.ask(&lease_kind(), request.map_err(of_building)?).await.map(drop)
    }

    /// Renews until it is told to stop, or too late.
    async fn keep(mut self, lost: CancellationToken, stop: CancellationToken) -> Self {
        loop {
            let pause = self.pause();
            tokio::select! {
                () = stop.cancelled() => return self,
                () = sleep(pause) => {}
            }
            let Some(until) = self.election.leads_until().map(|time| self.epoch + time) else { break };
            match timeout_at(until, self.attempt()).await {
                Ok(Ok(true)) => continue,
                Ok(Ok(false)) => break,
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.options.name, %error, "the lease was not renewed");
                    if Instant::now() < until {
                        continue;
                    }
                    break;
                }
                Err(_) => break,
            }
        }
        tracing::warn!(lease = self.options.name, "the lead is lost");
        lost.cancel();
        self
    }

    /// Leaves the Lease without a holder.
    async fn leave(mut self) {
        let left = async {
            let kind = lease_kind();
            let found = self.target.get(&kind, &self.options.namespace, &self.options.name).await?;
            self.lease = found.map(|o| o.to_value());
            let Some(spec) = self.lease.as_ref().and_then(|l| l.get("spec")).cloned() else { return Ok(()) };
            if spec.get("holderIdentity").and_then(Value::as_str) != Some(self.options.identity.as_str()) {
                return Ok(());
            }
            let mut spec = spec;
            if let Some(map) = spec.as_object_mut() {
                // As client-go does, which does not take an empty Lease for a valid one.
                map.insert("holderIdentity".to_owned(), "".into());
                map.insert("leaseDurationSeconds".to_owned(), 1.into());
            }
            self.store(spec).await
        };
        if let Err(error) = left.await {
            tracing::debug!(%error, "the lease was not released; others wait until it ends");
        }
    }
}

fn lease_kind() -> Kind {
    Kind {
        gvk: GroupVersionKind::new("coordination.k8s.io", "v1", "Lease"),
        plural: "leases".into(),
        namespaced: true,
    }
}

fn record(lease: &Value) -> Record {
    let text = |path: &str| lease.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |path: &str| lease.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    Record {
        holder: text("/spec/holderIdentity"),
        duration: Duration::from_secs(number("/spec/leaseDurationSeconds")),
        transitions: i32::try_from(number("/spec/leaseTransitions")).unwrap_or(i32::MAX),
        version: text("/metadata/resourceVersion"),
    }
}
