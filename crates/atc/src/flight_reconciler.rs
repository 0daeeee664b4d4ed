//! A flight as a reconciler.

use std::sync::Arc;

use async_trait::async_trait;
use horchestra_api::ResourceMatcher;
use horchestra_core::{
    Answer, Cluster, DesiredState, DynReconciler, Error, Kind, Object, Read, ReleaseId, Result,
};
use horchestra_flight::ClusterHost;
use horchestra_flight::contract::{
    Evaluate, Fault, Host, Invocation, Limit, Limits, NoCluster, Output, Refusal, State,
};
use horchestra_flight::output;
use serde_json::{Value, json};

/// How often one run is evaluated again because a read had to be waited for. A flight that reads
/// more kinds than this, one after the other, goes on in its next run.
const MAX_ATTEMPTS: usize = 64;

/// What a read outside the release is refused with; clients of Yoke match on it.
const OUTSIDE: &str = "forbidden: cannot access resource outside of target release ownership";

/// Which objects a flight may read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Access {
    /// None of the cluster at all if false.
    pub granted: bool,
    /// What it may read besides the objects of its own release.
    pub matchers: Vec<ResourceMatcher>,
}

impl Access {
    /// Whether a flight on behalf of `release` may see this answer. Absence may always be seen.
    fn check(&self, release: &ReleaseId, answer: &Answer) -> Result<(), Refusal> {
        let objects: &[Object] = match answer {
            Answer::Object(object) => object.as_slice(),
            Answer::Objects(objects) => objects,
            _ => &[],
        };
        let allowed = |o: &Object| {
            o.release() == Some(release) || self.matchers.iter().any(|m| m.matches(&o.reference()))
        };
        if objects.iter().all(allowed) {
            Ok(())
        } else {
            Err(Refusal::State(State::Forbidden, OUTSIDE.into()))
        }
    }
}

/// Runs a flight for every resource of a kind.
#[derive(Debug)]
pub struct FlightReconciler {
    /// What it reconciles.
    pub kind: Kind,
    /// The loaded module.
    pub flight: Arc<dyn Evaluate>,
    /// Its SHA-256 in hexadecimal, and where it came from, for journals.
    pub module: (String, String),
    /// The path of what it gets on stdin; empty for the whole resource.
    pub object_path: Vec<String>,
    /// The bounds of one evaluation.
    pub limits: Limits,
    /// What it may read.
    pub access: Access,
}

impl FlightReconciler {
    /// What the flight of this resource is called with.
    fn invocation(&self, object: &Object, release: &ReleaseId) -> Result<Invocation> {
        let whole = object.to_value();
        let mut at = &whole;
        for (depth, key) in self.object_path.iter().enumerate() {
            at = match at {
                Value::Object(map) => map.get(key).unwrap_or(&Value::Null),
                Value::Null => &Value::Null,
                _ => {
                    let path = self.object_path.get(..depth).unwrap_or_default().join(".");
                    return Err(Error::invalid(
                        object.reference(),
                        format!("{path} is not a map; the Airway's objectPath leads through it to {key:?}"),
                    ));
                }
            };
        }
        let mut invocation = Invocation::new(&release.name, &release.namespace, serde_json::to_vec(at)?);
        invocation.limits = self.limits;
        Ok(invocation)
    }

    /// Evaluates until every read has had an answer.
    async fn evaluate(
        &self,
        invocation: Invocation,
        release: &ReleaseId,
        cluster: &Cluster,
    ) -> Result<Output> {
        let invocation = Arc::new(invocation);
        let host = self.access.granted.then(|| {
            let (access, release) = (self.access.clone(), release.clone());
            let guard = move |_: &Read, answer: &Answer| access.check(&release, answer);
            // Whether a kind has namespaces is the runtime's to know; it drops one that does not fit.
            let namespace = invocation_namespace(&invocation);
            Arc::new(ClusterHost::new(cluster.clone(), namespace, |_| true).guarded(guard))
        });
        for _ in 0..MAX_ATTEMPTS {
            let (flight, call) = (self.flight.clone(), invocation.clone());
            let asked: Arc<dyn Host> = match &host {
                Some(host) => host.clone(),
                None => Arc::new(NoCluster),
            };
            let evaluation = tokio::task::spawn_blocking(move || flight.evaluate(&call, asked));
            let result =
                evaluation.await.map_err(|e| Error::transient(format!("the evaluation was ended: {e}")))?;
            match (result, &host) {
                (Ok(output), _) => return Ok(output),
                // A flight is pure: evaluating it again once the read has an answer loses nothing.
                (Err(Fault::Pending), Some(host)) if host.settle().await? => {}
                (Err(fault), _) => return Err(failed(&fault)),
            }
        }
        Err(Error::transient(format!(
            "the flight reads more than {MAX_ATTEMPTS} new kinds or objects in one run; it goes on in the next"
        )))
    }
}

/// The same evaluation fails the same way again, unless it ran out of time: that depends on what
/// else the machine was doing.
fn failed(fault: &Fault) -> Error {
    let text = format!("failed to evaluate flight: {fault}");
    match fault {
        Fault::Limit { limit: Limit::Timeout, .. } => Error::transient(text),
        _ => Error::terminal(text),
    }
}

fn invocation_namespace(invocation: &Invocation) -> Arc<str> {
    use horchestra_flight::contract::ENV_NAMESPACE;
    invocation.env.iter().find(|(k, _)| k == ENV_NAMESPACE).map_or("default", |(_, v)| v).into()
}

#[async_trait]
impl DynReconciler for FlightReconciler {
    fn kind(&self) -> Kind {
        self.kind.clone()
    }

    async fn reconcile_object(&self, object: &Object, cluster: &Cluster) -> Result<DesiredState> {
        let release = ReleaseId::of_instance(&object.reference());
        let invocation = self.invocation(object, &release)?;
        let result = self.evaluate(invocation, &release, cluster).await?;
        output::parse(&result, Some(object))
    }

    fn recipe(&self) -> Option<Value> {
        let (sha256, url) = &self.module;
        Some(json!({
            "flight": url,
            "sha256": sha256,
            "objectPath": self.object_path,
            "clusterAccess": self.access.granted,
            "resourceAccessMatchers": self.access.matchers,
            "kind": {"apiVersion": self.kind.gvk.api_version(), "kind": &*self.kind.gvk.kind,
                "plural": &*self.kind.plural, "namespaced": self.kind.namespaced},
        }))
    }
}
