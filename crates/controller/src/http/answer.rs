//! Answers: codes, headers, Status bodies.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use serde_json::Value;

use super::body::{Answer, full};
use crate::ApiError;

/// The media type of nearly every answer.
pub(crate) const JSON: &str = "application/json";
/// All warnings of one answer together.
const MAX_WARNING_BYTES: usize = 4096;

/// An answer with a whole body.
pub(crate) fn bytes(code: u16, media_type: &'static str, body: impl Into<Bytes>) -> Response<Answer> {
    with_body(code, media_type, full(body))
}

/// An answer with any body.
pub(crate) fn with_body(code: u16, media_type: &'static str, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    response
}

/// A JSON answer.
pub(crate) fn json(code: u16, value: &Value) -> Response<Answer> {
    bytes(code, JSON, value.to_string())
}

/// The Status of an error.
pub(crate) fn error(error: &ApiError) -> Response<Answer> {
    let mut response = json(error.code(), &error.status());
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds `Warning` headers, as RFC 7234 and Kubernetes write them.
pub(crate) fn warn(mut response: Response<Answer>, warnings: &[String]) -> Response<Answer> {
    let mut left = MAX_WARNING_BYTES;
    for warning in warnings {
        let clean: String = warning
            .chars()
            .map(|c| if c.is_control() || !c.is_ascii() { ' ' } else { c })
            .collect::<String>()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let Some(rest) = left.checked_sub(clean.len()) else { break };
        left = rest;
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{clean}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
