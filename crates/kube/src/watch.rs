//! Watching, line by line.

use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use futures::{StreamExt, stream};
use horchestra_core::Kind;
use horchestra_runtime::{Revision, Scope, TargetError, WatchEvent, WatchStream};
use kube_client::Client;
use kube_core::Status;
use kube_core::params::WatchParams;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{of_building, of_request, of_status};
use crate::listing::{object, place};

/// How long one watch request lasts, in seconds. The client asks, so that a connection that died
/// without a word is noticed; kubectl's and client-go's watches last 5 to 10 minutes.
const DURATION: u32 = 290;
/// How long after that the connection counts as dead.
const GRACE: Duration = Duration::from_secs(10);
/// The longest line: an object is at most 3 MiB in etcd's request, and JSON may be twice that.
const MAX_LINE: u64 = 16 << 20;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    what: String,
    object: Value,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
}

/// Everything that happens in a scope after a revision.
pub(crate) async fn watch(
    client: &Client,
    kind: &Kind,
    scope: &Scope,
    from: &Revision,
) -> Result<WatchStream, TargetError> {
    let (place, selector) = place(kind, scope)?;
    let params = WatchParams {
        field_selector: selector,
        timeout: Some(DURATION),
        bookmarks: true,
        ..WatchParams::default()
    };
    let mut request = place.watch(&params, &from.0).map_err(of_building)?;
    // Servers from 1.37 on compress each event on its own, which not every decoder reads to the end.
    request.headers_mut().insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
    let body: Pin<Box<dyn AsyncBufRead + Send>> =
        Box::pin(client.request_stream(request).await.map_err(of_request)?);
    let end = tokio::time::Instant::now() + Duration::from_secs(DURATION.into()) + GRACE;
    let lines = Lines { body, kind: kind.clone(), end };
    Ok(stream::unfold(Some(lines), |lines| async {
        let mut lines = lines?;
        let event = lines.next().await?;
        let goes_on = event.is_ok();
        Some((event, goes_on.then_some(lines)))
    })
    .boxed())
}

struct Lines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    kind: Kind,
    end: tokio::time::Instant,
}

impl Lines {
    /// The next event; none at the end of the request, after which the watch is resumed.
    async fn next(&mut self) -> Option<Result<WatchEvent, TargetError>> {
        let mut line = Vec::new();
        let read = read_line(&mut self.body, &mut line);
        match tokio::time::timeout_at(self.end, read).await {
            Err(_) => {
                tracing::debug!(kind = %self.kind, "the server did not end the watch in time");
                None
            }
            // A connection that breaks is the same as a request that ends: nothing is lost by resuming.
            Ok(Err(error)) => {
                tracing::debug!(kind = %self.kind, %error, "the watch was cut");
                None
            }
            Ok(Ok(())) if line.is_empty() => None,
            Ok(Ok(())) if line.last() == Some(&b'\n') => Some(event(&self.kind, &line)),
            Ok(Ok(())) if line.len() as u64 >= MAX_LINE => Some(Err(TargetError::Unavailable {
                message: format!("an event of {} is longer than {MAX_LINE} bytes", self.kind),
                retry_after: None,
            })),
            // The last line was cut.
            Ok(Ok(())) => None,
        }
    }
}

async fn read_line(body: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> std::io::Result<()> {
    body.take(MAX_LINE).read_until(b'\n', line).await.map(drop)
}

fn event(kind: &Kind, line: &[u8]) -> Result<WatchEvent, TargetError> {
    let unreadable = |e: serde_json::Error| TargetError::Unavailable {
        message: format!("an event of {kind} cannot be read: {e}"),
        retry_after: None,
    };
    let line: Line = serde_json::from_slice(line).map_err(unreadable)?;
    match line.what.as_str() {
        "ADDED" | "MODIFIED" => object(kind, line.object).map(WatchEvent::Applied),
        "DELETED" => object(kind, line.object).map(WatchEvent::Deleted),
        "BOOKMARK" => {
            let mark: Bookmark = serde_json::from_value(line.object).map_err(unreadable)?;
            Ok(WatchEvent::Bookmark(Revision(mark.metadata.resource_version)))
        }
        "ERROR" => {
            let status: Status = serde_json::from_value(line.object).map_err(unreadable)?;
            Err(of_status(&status))
        }
        other => Err(TargetError::Unavailable {
            message: format!("an event of {kind} has the unknown type {other:?}"),
            retry_after: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horchestra_core::GroupVersionKind;

    fn lines(bytes: &'static [u8]) -> Lines {
        let kind = Kind {
            gvk: GroupVersionKind::new("", "v1", "Secret"),
            plural: "secrets".into(),
            namespaced: true,
        };
        let end = tokio::time::Instant::now() + Duration::from_secs(5);
        Lines { body: Box::pin(futures::io::Cursor::new(bytes)), kind, end }
    }

    #[tokio::test]
    async fn events_are_read_line_by_line_to_a_clean_end() {
        let mut lines = lines(
            b"{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"}}}\n\
              {\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"b\"}}}\n\
              {\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Secret\",\"metadata\":{\"resourceVersion\":\"7\"}}}\n\
              {\"type\":\"ADDED\",\"obj",
        );
        assert!(matches!(lines.next().await, Some(Ok(WatchEvent::Applied(o))) if &**o.name() == "a"));
        assert!(matches!(lines.next().await, Some(Ok(WatchEvent::Deleted(o))) if &**o.name() == "b"));
        assert!(matches!(lines.next().await, Some(Ok(WatchEvent::Bookmark(r))) if r.0 == "7"));
        assert!(lines.next().await.is_none(), "a line that was cut is no event");
    }

    #[tokio::test]
    async fn a_revision_that_is_gone_and_nonsense_are_errors() {
        let mut gone = lines(b"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n");
        assert!(matches!(gone.next().await, Some(Err(TargetError::Gone(_)))));
        for text in
            [&b"{\"type\":\"MOVED\",\"object\":{}}\n"[..], b"x\n", b"{\"type\":\"ADDED\",\"object\":7}\n"]
        {
            assert!(matches!(lines(text).next().await, Some(Err(TargetError::Unavailable { .. }))));
        }
    }
}
