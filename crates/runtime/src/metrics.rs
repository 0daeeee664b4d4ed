//! Metrics, by the names that controller-runtime gave them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Of {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfResult {
    controller: String,
    result: &'static str,
}

/// How a run ended, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunResult {
    Success,
    Waiting,
    Retry,
    Terminal,
    Timeout,
    Panic,
}

type Times = Family<Of, Histogram, fn() -> Histogram>;

pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    total: Family<OfResult, Counter>,
    errors: Family<Of, Counter>,
    terminal: Family<Of, Counter>,
    panics: Family<Of, Counter>,
    timeouts: Family<Of, Counter>,
    time: Times,
    active: Family<Of, Gauge>,
    max: Family<Of, Gauge>,
    depth: Family<Of, Gauge>,
    adds: Family<Of, Counter>,
    waited: Times,
    writes: Family<Of, Counter>,
    watches: Gauge,
}

fn buckets() -> Histogram {
    // 10 us to about 40 s.
    Histogram::new(exponential_buckets(0.000_01, 4.0, 12))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            total: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(buckets),
            active: Family::default(),
            max: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            waited: Family::new_with_constructor(buckets),
            writes: Family::default(),
            watches: Gauge::default(),
        };
        let mut r = metrics.registry.lock().unwrap_or_else(PoisonError::into_inner);
        r.register("controller_runtime_reconcile", "Runs by result", metrics.total.clone());
        r.register("controller_runtime_reconcile_errors", "Runs that failed", metrics.errors.clone());
        r.register(
            "controller_runtime_terminal_reconcile_errors",
            "Runs that failed and only a change can help",
            metrics.terminal.clone(),
        );
        r.register("controller_runtime_reconcile_panics", "Runs that panicked", metrics.panics.clone());
        r.register(
            "controller_runtime_reconcile_timeouts",
            "Runs that took too long",
            metrics.timeouts.clone(),
        );
        r.register("controller_runtime_reconcile_time_seconds", "Duration of a run", metrics.time.clone());
        r.register("controller_runtime_active_workers", "Runs right now", metrics.active.clone());
        r.register(
            "controller_runtime_max_concurrent_reconciles",
            "Runs at once at most",
            metrics.max.clone(),
        );
        r.register("workqueue_depth", "Resources that wait for a run", metrics.depth.clone());
        r.register("workqueue_adds", "Events", metrics.adds.clone());
        r.register("workqueue_queue_duration_seconds", "Wait before a run", metrics.waited.clone());
        r.register("horchestra_writes", "Objects written or deleted", metrics.writes.clone());
        r.register("horchestra_watches", "Running watches", metrics.watches.clone());
        drop(r);
        metrics
    }

    fn of(name: &str) -> Of {
        Of { controller: name.to_owned() }
    }

    pub(crate) fn added(&self, name: &str, depth: usize) {
        self.adds.get_or_create(&Self::of(name)).inc();
        self.depth(name, depth);
    }

    pub(crate) fn depth(&self, name: &str, depth: usize) {
        self.depth.get_or_create(&Self::of(name)).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub(crate) fn started(&self, name: &str, waited: Duration, max: usize) {
        let of = Self::of(name);
        self.waited.get_or_create(&of).observe(waited.as_secs_f64());
        self.active.get_or_create(&of).inc();
        self.max.get_or_create(&of).set(i64::try_from(max).unwrap_or(i64::MAX));
    }

    pub(crate) fn ended(&self, name: &str, took: Duration, result: RunResult) {
        let of = Self::of(name);
        self.active.get_or_create(&of).dec();
        self.time.get_or_create(&of).observe(took.as_secs_f64());
        let word = match result {
            RunResult::Success => "success",
            RunResult::Waiting => "requeue_after",
            _ => "error",
        };
        self.total.get_or_create(&OfResult { controller: name.to_owned(), result: word }).inc();
        let more = match result {
            RunResult::Success | RunResult::Waiting => return,
            RunResult::Retry => None,
            RunResult::Terminal => Some(&self.terminal),
            RunResult::Timeout => Some(&self.timeouts),
            RunResult::Panic => Some(&self.panics),
        };
        self.errors.get_or_create(&of).inc();
        if let Some(family) = more {
            family.get_or_create(&of).inc();
        }
    }

    pub(crate) fn wrote(&self, name: &str) {
        self.writes.get_or_create(&Self::of(name)).inc();
    }

    /// Everything as OpenMetrics text.
    pub(crate) fn text(&self, watches: usize) -> String {
        self.watches.set(i64::try_from(watches).unwrap_or(i64::MAX));
        let mut out = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String cannot fail.
        let _ = encode(&mut out, &registry);
        out
    }
}
