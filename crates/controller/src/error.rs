//! What can go wrong with a request, and the `Status` a client sees for it.

use horchestra_core::field_error::FieldError;
use serde_json::{Value, json};

/// The kind or resource that an error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural resource name, such as `jobs`.
    pub resource: String,
    /// Kind, such as `Job`.
    pub kind: String,
    /// Name of the object, empty when the request named none.
    pub name: String,
}

impl Subject {
    /// `jobs.batch`, or `configmaps` for the core group.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// One entry of `details.causes` of a Status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldManagerConflict`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Path of the field, empty when the cause is no field.
    pub field: String,
}

/// Why a request was not carried out. [`ApiError::status`] is the body that Kubernetes would send.
///
/// The reasons and codes are those of Kubernetes' API conventions ("Response Status Kind").
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The request cannot be understood. The message says which part.
    #[error("{0}")]
    BadRequest(String),
    /// No valid client certificate and no valid token.
    #[error("Unauthorized")]
    Unauthorized,
    /// Known caller, but not allowed; also what admission answers with.
    #[error("{} \"{}\" is forbidden: {message}", subject.qualified(), subject.name)]
    Forbidden {
        /// What was asked for.
        subject: Box<Subject>,
        /// Why not.
        message: String,
        /// Causes, such as `NamespaceTerminating`.
        causes: Vec<Cause>,
    },
    /// Admission said no, with its own code and reason.
    #[error("{message}")]
    Denied {
        /// HTTP code, 400 to 499.
        code: u16,
        /// Status reason, such as `Forbidden` or `Invalid`.
        reason: String,
        /// For people; says what to change.
        message: String,
        /// Field causes, if any.
        causes: Vec<Cause>,
    },
    /// No object of that name.
    #[error("{} \"{}\" not found", .0.qualified(), .0.name)]
    NotFound(Box<Subject>),
    /// No such path, group, version or resource.
    #[error("the server could not find the requested resource")]
    UnknownPath,
    /// An object of that name is there already.
    #[error("{} \"{}\" already exists", .0.qualified(), .0.name)]
    AlreadyExists(Box<Subject>),
    /// The object changed since the client read it, or a precondition does not hold, or a field has another manager.
    #[error("{message}")]
    Conflict {
        /// What was written.
        subject: Box<Subject>,
        /// The whole message.
        message: String,
        /// One per conflicting field of an apply.
        causes: Vec<Cause>,
    },
    /// The object breaks rules of its kind; every failing field is listed.
    #[error("{}", invalid_message(subject, errors))]
    Invalid {
        /// What was written.
        subject: Box<Subject>,
        /// At least one.
        errors: Vec<FieldError>,
    },
    /// The asked-for revision or continue token is compacted away. List again.
    #[error("{0}")]
    Expired(String),
    /// The asked-for revision has not been reached yet.
    #[error("Too large resource version: {requested}, current: {current}")]
    FutureRevision {
        /// What the client asked for.
        requested: u64,
        /// Where the store is.
        current: u64,
    },
    /// The resource does not support the verb.
    #[error("{0}")]
    MethodNotAllowed(String),
    /// The body's media type is not understood.
    #[error("the body of the request was in an unknown format - accepted media types include: {0}")]
    UnsupportedMediaType(String),
    /// Nothing that the client accepts can be produced.
    #[error("only the following media types are accepted: {0}")]
    NotAcceptable(String),
    /// The body or the object is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// The body did not arrive in time, or the server gave up on the work.
    #[error("{0}")]
    Timeout(String),
    /// Too much at once. Try again after a second.
    #[error("{0}")]
    TooManyRequests(String),
    /// The server is going away or has not started.
    #[error("{0}")]
    Unavailable(String),
    /// A fault of the server or its store. Not the client's doing.
    #[error("Internal error occurred: {0}")]
    Internal(String),
}

fn invalid_message(subject: &Subject, errors: &[FieldError]) -> String {
    let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = match list.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    format!("{} \"{}\" is invalid: {text}", subject.qualified_kind(), subject.name)
}

impl ApiError {
    /// A conflict because the object changed under the writer (optimistic concurrency).
    #[must_use]
    pub fn modified(subject: Subject) -> Self {
        Self::failed_operation(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// A conflict with its own cause, in Kubernetes' words.
    #[must_use]
    pub fn failed_operation(subject: Subject, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{}\": {why}", subject.qualified(), subject.name);
        Self::Conflict { subject: Box::new(subject), message, causes: Vec::new() }
    }

    /// The HTTP code.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unauthorized => 401,
            Self::Forbidden { .. } => 403,
            Self::Denied { code, .. } => *code,
            Self::NotFound(_) | Self::UnknownPath => 404,
            Self::MethodNotAllowed(_) => 405,
            Self::NotAcceptable(_) => 406,
            Self::AlreadyExists(_) | Self::Conflict { .. } => 409,
            Self::Expired(_) => 410,
            Self::TooLarge(_) => 413,
            Self::UnsupportedMediaType(_) => 415,
            Self::Invalid { .. } => 422,
            Self::TooManyRequests(_) => 429,
            Self::Internal(_) => 500,
            Self::Unavailable(_) => 503,
            Self::FutureRevision { .. } | Self::Timeout(_) => 504,
        }
    }

    /// The Status reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden { .. } => "Forbidden",
            Self::Denied { reason, .. } => reason,
            Self::NotFound(_) | Self::UnknownPath => "NotFound",
            Self::MethodNotAllowed(_) => "MethodNotAllowed",
            Self::NotAcceptable(_) => "NotAcceptable",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::Conflict { .. } => "Conflict",
            Self::Expired(_) => "Expired",
            Self::TooLarge(_) => "RequestEntityTooLarge",
            Self::UnsupportedMediaType(_) => "UnsupportedMediaType",
            Self::Invalid { .. } => "Invalid",
            Self::TooManyRequests(_) => "TooManyRequests",
            Self::Internal(_) => "InternalError",
            Self::Unavailable(_) => "ServiceUnavailable",
            Self::FutureRevision { .. } | Self::Timeout(_) => "Timeout",
        }
    }

    /// Seconds after which the same request may work, for `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        matches!(self, Self::TooManyRequests(_) | Self::FutureRevision { .. } | Self::Unavailable(_))
            .then_some(1)
    }

    /// The `v1` Status object.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "reason": self.reason(),
            "code": self.code(),
        });
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        let mut details = match self {
            Self::Forbidden { subject, causes, .. } => described(subject, &subject.resource, causes),
            Self::Conflict { subject, causes, .. } => described(subject, &subject.resource, causes),
            Self::NotFound(subject) | Self::AlreadyExists(subject) => {
                described(subject, &subject.resource, &[])
            }
            Self::Invalid { subject, errors } => {
                let causes: Vec<Cause> = errors.iter().map(field_cause).collect();
                described(subject, &subject.kind, &causes)
            }
            Self::Denied { causes, .. } => described(&Subject::default(), "", causes),
            Self::FutureRevision { .. } => json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            }),
            Self::UnknownPath | Self::Internal(_) | Self::TooManyRequests(_) => json!({}),
            _ => return None,
        };
        if let Some(seconds) = self.retry_after() {
            details["retryAfterSeconds"] = json!(seconds);
        }
        Some(details)
    }
}

fn described(subject: &Subject, kind: &str, causes: &[Cause]) -> Value {
    let mut details = json!({});
    for (key, value) in [("name", subject.name.as_str()), ("group", &subject.group), ("kind", kind)] {
        if !value.is_empty() {
            details[key] = json!(value);
        }
    }
    if !causes.is_empty() {
        details["causes"] = causes
            .iter()
            .map(|cause| {
                let mut out = json!({"reason": cause.reason, "message": cause.message});
                if !cause.field.is_empty() {
                    out["field"] = json!(cause.field);
                }
                out
            })
            .collect();
    }
    details
}

fn field_cause(error: &FieldError) -> Cause {
    Cause { reason: error.kind.as_str().to_owned(), message: error.body(), field: error.path.to_string() }
}
