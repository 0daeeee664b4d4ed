//! What can go wrong with an Airway.

use std::time::Duration;

/// Why a flight cannot be run. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AtcError {
    /// The allow-list does not have it.
    #[error("module {url:?} not allowed; add it to the list of allowed modules")]
    NotAllowed {
        /// Where the module is said to be.
        url: String,
    },
    /// The allow-list has a pattern that is not one.
    #[error(
        "allowed module {pattern:?}: {reason}; `*` and `?` stand for anything but `/`, `[ab]` for one of these"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no way to get it yet.
    #[error("module {url:?}: {scheme} is not supported yet; use a file, a directory or oci:DIRECTORY")]
    Unsupported {
        /// Where the module is said to be.
        url: String,
        /// The scheme.
        scheme: String,
    },
    /// It cannot be read.
    #[error("module {url:?}: {reason}")]
    Unreadable {
        /// Where the module is said to be.
        url: String,
        /// Why.
        reason: String,
    },
    /// It is another module than expected. The text is Yoke's.
    #[error("cannot verify module against expected checksum: wanted {wanted:?} but got {got:?}")]
    Checksum {
        /// What the Airway says.
        wanted: String,
        /// What it is.
        got: String,
    },
    /// No engine takes it.
    #[error("module {url:?}: {reason}")]
    Refused {
        /// Where the module is said to be.
        url: String,
        /// What the engine said.
        reason: String,
    },
    /// The definition in the Airway is wrong.
    #[error("invalid airway: {path}: {message}")]
    Template {
        /// The field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// Compiling took too long for somebody to wait.
    #[error("module {url:?} is still being compiled after {after:?}; try again")]
    Slow {
        /// Where the module is said to be.
        url: String,
        /// How long was waited.
        after: Duration,
    },
    /// The directory of compiled modules cannot be used.
    #[error("{0}")]
    Cache(String),
}
