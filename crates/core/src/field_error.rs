//! What is wrong with a field, in Kubernetes' words.

use std::fmt;

use serde_json::Value;

use crate::field_path::FieldPath;

/// Why a field was refused. The reason strings are the `causes[].reason` of a Kubernetes `Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldErrorKind {
    /// The value breaks a rule.
    Invalid,
    /// The field must be there and is not.
    Required,
    /// The value is not one of those allowed.
    NotSupported,
    /// The value has another JSON type than the schema says.
    TypeInvalid,
    /// The value stands twice where it may stand once.
    Duplicate,
    /// The field may not be set here.
    Forbidden,
    /// What the field refers to does not exist.
    NotFound,
    /// The text is longer than allowed.
    TooLong,
    /// The list or map has more entries than allowed.
    TooMany,
}

impl FieldErrorKind {
    /// The reason as it stands in a `Status`: `FieldValueInvalid`, ...
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One field that was refused.
///
/// Prints as the kube-apiserver does: `spec.replicas: Invalid value: -5: must be ...`. The part after the path,
/// [`FieldError::body`], is the `causes[].message` of a `Status`, the path its `causes[].field`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The field.
    pub path: FieldPath,
    /// Why it was refused.
    pub kind: FieldErrorKind,
    /// What would be right. May be empty.
    pub detail: String,
    /// The value that was found, where it helps; only its start if it is large.
    pub bad_value: Option<Value>,
}

/// Longest value that an error repeats, in bytes. A hostile object must not grow the answer.
const MAX_SHOWN: usize = 512;

impl FieldError {
    /// An error of any kind.
    #[must_use]
    pub fn new(
        path: impl Into<FieldPath>,
        kind: FieldErrorKind,
        detail: impl Into<String>,
        bad_value: Option<Value>,
    ) -> Self {
        Self { path: path.into(), kind, detail: detail.into(), bad_value: bad_value.map(evidence) }
    }

    /// The value breaks a rule; `detail` says which.
    #[must_use]
    pub fn invalid(path: impl Into<FieldPath>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::Invalid, detail, Some(value.clone()))
    }

    /// The field must be set.
    #[must_use]
    pub fn required(path: impl Into<FieldPath>, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::Required, detail, None)
    }

    /// The value is not one of `supported`.
    #[must_use]
    pub fn not_supported(path: impl Into<FieldPath>, value: &Value, supported: &[&str]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(path, FieldErrorKind::NotSupported, detail, Some(value.clone()))
    }

    /// The value has the wrong JSON type.
    #[must_use]
    pub fn type_invalid(path: impl Into<FieldPath>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::TypeInvalid, detail, Some(value.clone()))
    }

    /// The value stands there twice.
    #[must_use]
    pub fn duplicate(path: impl Into<FieldPath>, value: &Value) -> Self {
        Self::new(path, FieldErrorKind::Duplicate, "", Some(value.clone()))
    }

    /// The field may not be set.
    #[must_use]
    pub fn forbidden(path: impl Into<FieldPath>, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::Forbidden, detail, None)
    }

    /// The text is longer than `max` bytes.
    #[must_use]
    pub fn too_long(path: impl Into<FieldPath>, max: usize) -> Self {
        Self::new(path, FieldErrorKind::TooLong, format!("may not be more than {max} bytes"), None)
    }

    /// The list or map has `actual` entries, more than `max`.
    #[must_use]
    pub fn too_many(path: impl Into<FieldPath>, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} items");
        Self::new(path, FieldErrorKind::TooMany, detail, Some(Value::from(actual)))
    }

    /// The same error seen from further up: `prefix` and then its path.
    #[must_use]
    pub fn under(self, prefix: impl Into<FieldPath>) -> Self {
        Self { path: self.path.under(prefix), ..self }
    }

    /// The message without the path.
    #[must_use]
    pub fn body(&self) -> String {
        use FieldErrorKind::{Forbidden, Required, TooLong};
        let mut text = self.kind.words().to_owned();
        if let (Some(value), false) = (&self.bad_value, matches!(self.kind, Required | Forbidden | TooLong)) {
            text.push_str(": ");
            text.push_str(&shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for FieldError {}

/// The value as JSON, which is how Go prints numbers, booleans, strings and objects alike here; null is `"null"`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "\"null\"".to_owned(),
        other => cut(other.to_string()),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_SHOWN {
        let end = (0..=MAX_SHOWN).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// The value, or the start of its JSON if it is large.
fn evidence(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text)),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX_SHOWN { Value::String(cut(text)) } else { value }
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_like_the_apiserver() {
        let replicas = FieldPath::of(["spec", "replicas"]);
        let error = FieldError::invalid(replicas.clone(), &json!(-5), "must be greater than or equal to 0");
        assert_eq!(error.to_string(), "spec.replicas: Invalid value: -5: must be greater than or equal to 0");
        assert_eq!(error.kind.as_str(), "FieldValueInvalid");
        assert_eq!(FieldError::required(replicas.clone(), "").to_string(), "spec.replicas: Required value");
        let error = FieldError::not_supported(replicas.clone(), &json!("x"), &["a", "b"]);
        assert_eq!(error.to_string(), r#"spec.replicas: Unsupported value: "x": supported values: "a", "b""#);
        let error = FieldError::duplicate(replicas.clone(), &json!({"name": "a"}));
        assert_eq!(error.to_string(), r#"spec.replicas: Duplicate value: {"name":"a"}"#);
        let error = FieldError::too_many(replicas.clone(), 3, 2);
        assert_eq!(error.to_string(), "spec.replicas: Too many: 3: must have at most 2 items");
        let error = FieldError::too_long(replicas, 63);
        assert_eq!(error.to_string(), "spec.replicas: Too long: may not be more than 63 bytes");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let error = FieldError::invalid(FieldPath::of(["a"]), &json!("ü".repeat(5000)), "");
        assert!(error.to_string().len() < 600);
    }
}
