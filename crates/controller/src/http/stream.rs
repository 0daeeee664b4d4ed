//! Watches as bodies that come in pieces: one JSON document for each event.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::accept::Form;
use super::body::{Answer, pieces};
use super::metrics::Metrics;
use crate::ApiError;
use crate::kinds::Endpoint;
use crate::rest::{IncludeObject, Watch, WatchItem, bookmark, partial, table};

/// Events that are there already are sent together, up to about this many bytes.
const MAX_PIECE: usize = 64 * 1024;

/// How events are written.
pub(crate) struct Writer {
    pub(crate) endpoint: Endpoint,
    pub(crate) form: Form,
    pub(crate) include: IncludeObject,
    /// Column headings come with the first event only.
    pub(crate) headings: bool,
}

impl Writer {
    fn item(&mut self, item: &WatchItem, out: &mut Vec<u8>) {
        match item {
            WatchItem::Event(kind, object) => {
                let head = format!("{{\"type\":\"{}\",\"object\":", kind.as_str());
                out.extend_from_slice(head.as_bytes());
                match self.form {
                    Form::Plain | Form::Discovery => {
                        object.write(self.endpoint.api_version(), &self.endpoint.kind().kind, out);
                    }
                    Form::Partial(version) => self.json(&partial(object.value(), version), out),
                    Form::Table(version) => {
                        let rows = self.table(&[object.value()], json!({}), version);
                        self.json(&rows, out);
                    }
                }
                out.extend_from_slice(b"}\n");
            }
            WatchItem::Bookmark { revision, initial_end } => {
                let plain = bookmark(&self.endpoint, *revision, *initial_end);
                let object = match self.form {
                    Form::Plain | Form::Discovery => plain,
                    Form::Partial(version) => partial(&plain, version),
                    Form::Table(version) => self.table(&[], plain["metadata"].clone(), version),
                };
                self.json(&json!({"type": "BOOKMARK", "object": object}), out);
                out.push(b'\n');
            }
        }
    }

    fn table(&mut self, objects: &[&Value], metadata: Value, version: &str) -> Value {
        let headings = std::mem::take(&mut self.headings);
        table(&self.endpoint, objects, metadata, self.include, version, headings)
    }

    fn json(&self, value: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

fn error_event(error: &ApiError) -> Bytes {
    let mut text = json!({"type": "ERROR", "object": error.status()}).to_string();
    text.push('\n');
    Bytes::from(text)
}

struct State {
    watch: Watch,
    writer: Writer,
    stop: CancellationToken,
    _guard: Guard,
}

/// Counts a running watch for as long as its body lives.
struct Guard {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.metrics.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a watch. Ends with the watch, or when `stop` is done.
pub(crate) fn body(
    watch: Watch,
    writer: Writer,
    stop: CancellationToken,
    metrics: Arc<Metrics>,
    permit: OwnedSemaphorePermit,
) -> Answer {
    metrics.watches.fetch_add(1, Ordering::Relaxed);
    let guard = Guard { metrics, _permit: permit };
    let start = State { watch, writer, stop, _guard: guard };
    pieces(stream::unfold(Some(start), |state| async move {
        let mut state = state?;
        let next = tokio::select! {
            next = state.watch.next() => next,
            () = state.stop.cancelled() => None,
        };
        match next? {
            Err(error) => Some((error_event(&error), None)),
            Ok(item) => {
                let mut out = Vec::with_capacity(1024);
                state.writer.item(&item, &mut out);
                while out.len() < MAX_PIECE
                    && let Some(item) = state.watch.ready()
                {
                    state.writer.item(&item, &mut out);
                }
                Some((Bytes::from(out), Some(state)))
            }
        }
    }))
}

/// The body of a watch that could not start: its only event is the error.
pub(crate) fn failed(error: &ApiError) -> Answer {
    pieces(stream::iter([error_event(error)]))
}
