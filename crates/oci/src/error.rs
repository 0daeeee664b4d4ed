use std::io;

use crate::{Digest, Platform};

/// What can be wrong with an image, a layout or an archive. Each message says what to do next.
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
    /// A reference that Docker and containerd would not read either.
    #[error("image reference {reference:?}: {problem}")]
    Reference {
        /// The text as it was written.
        reference: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Bytes that are not what their digest promises.
    #[error(
        "{what}: the digest is {found} but {expected} was promised; the blob is damaged or was replaced, fetch it again"
    )]
    Digest {
        /// Which blob.
        what: String,
        /// The digest that was promised.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// A blob that is longer or shorter than its descriptor says.
    #[error(
        "{what}: {found} bytes where the descriptor says {expected}; the blob is damaged or the descriptor wrong, fetch it again"
    )]
    Size {
        /// Which blob.
        what: String,
        /// The size of the descriptor, in bytes.
        expected: u64,
        /// The bytes found (at least).
        found: u64,
    },
    /// A media type that is not understood in this place.
    #[error("{what}: media type {found:?} cannot be used here; {expected} is needed")]
    MediaType {
        /// Which document or descriptor.
        what: String,
        /// The type found.
        found: String,
        /// What is needed.
        expected: &'static str,
    },
    /// Something is larger, deeper or more than is allowed.
    #[error("{what}: more than {limit} {unit} ({name}); raise that limit if the image is to be trusted")]
    Limit {
        /// What exceeded it.
        what: String,
        /// The name of the limit.
        name: &'static str,
        /// Its value.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A document that is not what the specification says.
    #[error("{what}: {problem}")]
    Document {
        /// Which document.
        what: String,
        /// The field and what is wrong with it.
        problem: String,
    },
    /// A name that the layout does not have.
    #[error("{what} is not in {place}; there is: {available}")]
    NotFound {
        /// What was looked for.
        what: String,
        /// Where.
        place: String,
        /// What is there instead.
        available: String,
    },
    /// An image that has no variant for this machine.
    #[error("{what}: no image for {wanted}; there is: {available}")]
    Platform {
        /// Which index or image.
        what: String,
        /// The platform asked for.
        wanted: Platform,
        /// The platforms offered.
        available: String,
    },
    /// An image configuration with a value that must not reach the system.
    #[error(
        "image configuration, {field}: {problem}; the image has to be built anew with a value that is allowed"
    )]
    Config {
        /// The JSON path of the field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An entry of a layer that is malformed, or tries something that no honest image does.
    #[error("layer {layer}, entry {path:?}: {problem}")]
    Entry {
        /// Number of the layer, counted from 0.
        layer: usize,
        /// The entry's name as the archive has it (lossy), or its position.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The destination is there already.
    #[error("{path}: exists already; remove it or unpack somewhere else")]
    Exists {
        /// The destination.
        path: String,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io { what: what.into(), source: source.into() }
    }

    pub(crate) fn document(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Document { what: what.into(), problem: problem.into() }
    }

    pub(crate) fn config(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Config { field: field.into(), problem: problem.into() }
    }

    /// True where trying again can help without anyone changing the image: a full disk, an interrupted read.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}
