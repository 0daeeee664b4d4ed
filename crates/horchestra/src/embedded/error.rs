//! Why an embedded server did not start.

use std::path::PathBuf;

/// Why an embedded server did not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// A directory or file of it cannot be used.
    #[error("{path}: {source}; choose another data directory or mend its rights", path = path.display())]
    Data {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] horchestra_controller::store::StoreError),
    /// The API server did not start.
    #[error(transparent)]
    Start(#[from] horchestra_controller::StartError),
    /// Keys or certificates.
    #[error(transparent)]
    Pki(#[from] horchestra_controller::pki::PkiError),
    /// A kind of this program is wrong, or a part of it did not start.
    #[error("{what} did not start: {reason}")]
    Part {
        /// Which part.
        what: &'static str,
        /// Why.
        reason: String,
    },
}
