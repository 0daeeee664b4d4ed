//! Why certificates could not be made or read.

use std::path::PathBuf;

/// What is wrong with the folder of keys and certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("{path}: {source}: check that the folder is writable by this user")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {reason}: delete the file to have it made anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A key or certificate cannot be made.
    #[error("cannot make the certificate of {name}: {reason}")]
    Make {
        /// Whose.
        name: String,
        /// Why.
        reason: String,
    },
}
