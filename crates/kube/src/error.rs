//! What an API server's refusals mean to a reconciler.

use std::time::Duration;

use horchestra_runtime::TargetError;
use kube_client::Error;
use kube_core::Status;

/// The error of a request.
pub(crate) fn of_request(error: Error) -> TargetError {
    match error {
        Error::Api(status) => of_status(&status),
        Error::SerdeError(e) => TargetError::Unavailable {
            message: format!("the answer is not what was asked for: {e}"),
            retry_after: None,
        },
        // Whatever happened on the way may have happened after the server did it: ask again.
        other => TargetError::Unavailable { message: full_text(&other), retry_after: None },
    }
}

/// The error of a request that could not even be made.
pub(crate) fn of_building(error: kube_core::request::Error) -> TargetError {
    TargetError::Invalid(full_text(&error))
}

/// What a `Status` says. Source: the Kubernetes API conventions, "Response Status Kind".
pub(crate) fn of_status(status: &Status) -> TargetError {
    let text = status.message.clone();
    let retry_after = status
        .details
        .as_ref()
        .map(|d| d.retry_after_seconds)
        .filter(|s| *s > 0)
        .map(|s| Duration::from_secs(s.into()));
    match status.code {
        404 => TargetError::NotFound(text),
        409 => TargetError::Conflict(text),
        410 => TargetError::Gone(text),
        401 | 403 => TargetError::Forbidden(text),
        400 | 405 | 406 | 413 | 415 | 422 => TargetError::Invalid(text),
        _ => TargetError::Unavailable { message: text, retry_after },
    }
}

/// An error with all its causes: a refused connection says so only at the bottom.
pub(crate) fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, details: serde_json::Value) -> Status {
        serde_json::from_value(serde_json::json!({"code": code, "message": "words", "details": details}))
            .unwrap()
    }

    #[test]
    fn codes_are_read_as_the_conventions_mean_them() {
        let of = |code| of_status(&status(code, serde_json::json!({})));
        assert_eq!(of(404), TargetError::NotFound("words".into()));
        assert_eq!(of(409), TargetError::Conflict("words".into()));
        assert_eq!(of(410), TargetError::Gone("words".into()));
        assert_eq!(of(403), TargetError::Forbidden("words".into()));
        assert_eq!(of(422), TargetError::Invalid("words".into()));
        for code in [429, 500, 503, 504] {
            assert!(matches!(of(code), TargetError::Unavailable { retry_after: None, .. }), "{code}");
        }
    }

    #[test]
    fn a_server_that_is_busy_says_for_how_long() {
        let busy = of_status(&status(429, serde_json::json!({"retryAfterSeconds": 3})));
        let expected =
            TargetError::Unavailable { message: "words".into(), retry_after: Some(Duration::from_secs(3)) };
        assert_eq!(busy, expected);
    }
}
