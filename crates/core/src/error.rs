//! The error of a reconciler, and of everything pure around it.

use std::fmt;

/// What went wrong, and by its variant what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It may work later as things stand: retried with back-off.
    #[error("{0}")]
    Transient(String),
    /// It will not work until the resource or something that was read changes: not retried by time.
    #[error("{0}")]
    Terminal(String),
    /// Somebody else owns what was to be written. Retried when that object changes, and with back-off.
    #[error("{0}")]
    Conflict(String),
    /// A value is wrong. Not retried until it changes.
    #[error("{path}: {message}")]
    Invalid {
        /// Which object and field, as Kubernetes writes paths: `Job default/one: spec.template`.
        path: String,
        /// What is wrong with it and what would be right.
        message: String,
    },
    /// A read has no answer yet because its kind is only now being watched. Never shown to anybody:
    /// the runtime evaluates again when the answer is there.
    #[error("waiting for the first read of {0}")]
    Pending(String),
}

impl Error {
    /// An error that may pass by itself.
    pub fn transient(message: impl fmt::Display) -> Self {
        Self::Transient(message.to_string())
    }

    /// An error that only a change of what was read can end.
    pub fn terminal(message: impl fmt::Display) -> Self {
        Self::Terminal(message.to_string())
    }

    /// An ownership or version conflict.
    pub fn conflict(message: impl fmt::Display) -> Self {
        Self::Conflict(message.to_string())
    }

    /// A wrong value at `path`.
    pub fn invalid(path: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::Invalid { path: path.to_string(), message: message.to_string() }
    }

    /// Whether trying again with nothing changed can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Transient(_) | Self::Conflict(_) | Self::Pending(_))
    }

    /// The same error with what was being done in front.
    #[must_use]
    pub fn context(self, doing: impl fmt::Display) -> Self {
        match self {
            Self::Transient(m) => Self::Transient(format!("{doing}: {m}")),
            Self::Terminal(m) => Self::Terminal(format!("{doing}: {m}")),
            Self::Conflict(m) => Self::Conflict(format!("{doing}: {m}")),
            Self::Invalid { path, message } => Self::Invalid { path, message: format!("{doing}: {message}") },
            pending @ Self::Pending(_) => pending,
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(e: serde_json::Error) -> Self {
        Self::Terminal(e.to_string())
    }
}

/// The result of a reconciler.
pub type Result<T, E = Error> = std::result::Result<T, E>;
