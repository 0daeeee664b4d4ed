//! What the server counts, under kube-apiserver's names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Kinds of requests counted apart. Paths of clients never become labels.
const MAX_SERIES: usize = 4096;

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

#[derive(Debug, Default)]
struct Series {
    requests: BTreeMap<(String, String, u16), u64>,
    durations: BTreeMap<(String, String), Histogram>,
}

/// Counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    series: Mutex<Series>,
    /// Watches running now.
    pub(crate) watches: AtomicI64,
    /// Connections open now.
    pub(crate) connections: AtomicI64,
}

impl Metrics {
    /// Counts an answered request. `resource` is a served resource or empty.
    pub(crate) fn count(&self, verb: &str, resource: &str, code: u16, took: Duration) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.requests.len() >= MAX_SERIES {
            return;
        }
        *series.requests.entry((verb.to_owned(), resource.to_owned(), code)).or_default() += 1;
        if verb == "watch" {
            return;
        }
        let histogram = series.durations.entry((verb.to_owned(), resource.to_owned())).or_default();
        let seconds = took.as_secs_f64();
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// In the text format of Prometheus.
    pub(crate) fn text(&self, revision: u64) -> String {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::from("# TYPE apiserver_request_total counter\n");
        for ((verb, resource, code), count) in &series.requests {
            let _ = writeln!(
                out,
                "apiserver_request_total{{verb=\"{verb}\",resource=\"{resource}\",code=\"{code}\"}} {count}"
            );
        }
        out.push_str("# TYPE apiserver_request_duration_seconds histogram\n");
        for ((verb, resource), histogram) in &series.durations {
            let labels = format!("verb=\"{verb}\",resource=\"{resource}\"");
            let name = "apiserver_request_duration_seconds";
            for (bucket, bound) in histogram.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", histogram.count);
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}", histogram.sum);
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", histogram.count);
        }
        let gauges = [
            ("apiserver_longrunning_requests", self.watches.load(Ordering::Relaxed)),
            ("horchestra_open_connections", self.connections.load(Ordering::Relaxed)),
            ("horchestra_store_revision", i64::try_from(revision).unwrap_or(i64::MAX)),
        ];
        for (name, value) in gauges {
            let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
        }
        out
    }
}
