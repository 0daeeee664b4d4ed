//! Bodies, in and out.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use horchestra_core::json::{self, JsonError};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::Value;

use super::protobuf;
use crate::ApiError;
use crate::rest::Body;

/// The body of an answer.
pub(crate) type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// A whole body.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Answer {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body that comes in pieces.
pub(crate) fn pieces(stream: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    use futures::StreamExt as _;
    StreamBody::new(stream.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// Reads a request's body up to `limit` bytes.
pub(crate) async fn read(headers: &HeaderMap, body: Incoming, limit: usize) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::TooLarge(format!("Request entity too large: limit is {limit}"));
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::UnsupportedMediaType(
            "uncompressed application/json, application/yaml".to_owned(),
        ));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Err(error) => Err(ApiError::BadRequest(format!("the body could not be read: {error}"))),
    }
}

/// The media type of a request's body, without parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Decodes JSON, YAML or protobuf, by media type.
pub(crate) fn decode(media_type: &str, bytes: &[u8]) -> Result<Body, ApiError> {
    match media_type {
        "" | "application/json" => decode_json(bytes),
        "application/yaml" => decode_yaml(bytes),
        protobuf::MEDIA_TYPE => Ok(protobuf::decode(bytes)?.into()),
        _ => Err(ApiError::UnsupportedMediaType("application/json, application/yaml".to_owned())),
    }
}

/// JSON, bounded. A key that stands twice is reported; the last one counts.
pub(crate) fn decode_json(bytes: &[u8]) -> Result<Body, ApiError> {
    match json::parse(bytes, json::Limits::REQUEST) {
        Ok(value) => Ok(value.into()),
        Err(JsonError::DuplicateKey { path }) => {
            // Bounded all the same: serde's own reader stops at a depth of 128.
            let value: Value = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
            Ok(Body { value, duplicates: vec![path.to_string()] })
        }
        Err(JsonError::TooLarge { limit, .. }) => {
            Err(ApiError::TooLarge(format!("Request entity too large: limit is {limit}")))
        }
        Err(error) => Err(malformed(&error)),
    }
}

/// YAML, or JSON, which an apply may be too.
pub(crate) fn decode_yaml(bytes: &[u8]) -> Result<Body, ApiError> {
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    if first == Some(&b'{') {
        return decode_json(bytes);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| malformed(&error))?;
    let value: Value = serde_saphyr::from_str(text).map_err(|error| malformed(&error))?;
    // Through the bounds of JSON: depth, and what JSON cannot say.
    let bytes = serde_json::to_vec(&value).map_err(|error| malformed(&error))?;
    decode_json(&bytes)
}

fn malformed(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::BadRequest(format!("the body of the request cannot be decoded: {error}"))
}
