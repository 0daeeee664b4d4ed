//! What the server counts, under kube-apiserver's names.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::exposition;

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Requests counted apart. Paths of clients never become labels.
const MAX_SERIES: usize = 4096;

/// Another part of the program whose metrics are shown with the server's: OpenMetrics text.
pub type MetricsSource = Arc<dyn Fn() -> String + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: String,
    resource: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    verb: String,
    resource: String,
}

/// Counters of one server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Of, Histogram, fn() -> Histogram>,
    revision: Gauge,
    long_running: Gauge,
    open: Gauge,
    series: AtomicUsize,
    sources: Mutex<Vec<MetricsSource>>,
    /// Watches running now.
    pub(crate) watches: AtomicI64,
    /// Connections open now.
    pub(crate) connections: AtomicI64,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            revision: Gauge::default(),
            long_running: Gauge::default(),
            open: Gauge::default(),
            series: AtomicUsize::new(0),
            sources: Mutex::default(),
            watches: AtomicI64::new(0),
            connections: AtomicI64::new(0),
        };
        let registry = &mut metrics.registry;
        registry.register("apiserver_request", "Requests answered", metrics.requests.clone());
        let help = "Time until a request was answered, without watches";
        registry.register("apiserver_request_duration_seconds", help, metrics.durations.clone());
        registry.register("apiserver_longrunning_requests", "Watches running", metrics.long_running.clone());
        registry.register("horchestra_open_connections", "Connections open", metrics.open.clone());
        registry.register("horchestra_store_revision", "Revision of the store", metrics.revision.clone());
        metrics
    }
}

impl Metrics {
    /// Counts an answered request. `resource` is a served resource or empty.
    pub(crate) fn count(&self, verb: &str, resource: &str, code: u16, took: Duration) {
        let request = Request { verb: verb.to_owned(), resource: resource.to_owned(), code };
        match self.requests.get(&request) {
            Some(counter) => drop(counter.inc()),
            None if self.series.fetch_add(1, Ordering::Relaxed) < MAX_SERIES => {
                self.requests.get_or_create(&request).inc();
            }
            None => return,
        }
        if verb != "watch" {
            let of = Of { verb: request.verb, resource: request.resource };
            self.durations.get_or_create(&of).observe(took.as_secs_f64());
        }
    }

    /// Shows the metrics of another part as well.
    pub(crate) fn add(&self, source: MetricsSource) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Everything as OpenMetrics text.
    pub(crate) fn text(&self, revision: u64) -> String {
        self.revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
        self.long_running.set(self.watches.load(Ordering::Relaxed));
        self.open.set(self.connections.load(Ordering::Relaxed));
        let mut own = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut own, &self.registry);
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let others = sources.iter().map(|source| source());
        exposition::merge(std::iter::once(own).chain(others))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("watches", &self.watches).finish_non_exhaustive()
    }
}
