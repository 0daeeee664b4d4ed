use std::io;

/// What can go wrong on a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// An image cannot be used.
    #[error(transparent)]
    Image(#[from] horchestra_oci::Error),
    /// Something that this node, or this way of supervising, cannot do.
    #[error("{what} is not possible here: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A value that must not reach the system.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A unit that is not there.
    #[error("no unit {0:?} on this node")]
    NoUnit(String),
    /// systemd refused something, or does not answer.
    #[error("{what}: {source}")]
    Systemd {
        /// What was being done.
        what: String,
        /// Its answer.
        source: Box<zbus::Error>,
    },
    /// The API does not take or give something.
    #[error("{what}: {source}")]
    Api {
        /// What was being done.
        what: String,
        /// Its answer.
        source: horchestra_runtime::TargetError,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { what: what.into(), source: source.into() }
    }

    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), why: why.into() }
    }
}
