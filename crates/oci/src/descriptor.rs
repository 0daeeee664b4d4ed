use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, MediaType, Platform};

/// A pointer to a blob: what it is, how long, and its digest (OCI's descriptor.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    media_type: String,
    /// Digest of the blob.
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) urls: Vec<String>,
}

impl Descriptor {
    pub(crate) fn new(media_type: &MediaType, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_string(),
            digest,
            size,
            platform: None,
            annotations: BTreeMap::new(),
            urls: Vec::new(),
        }
    }

    /// What the blob is.
    #[must_use]
    pub fn media_type(&self) -> MediaType {
        MediaType::from(self.media_type.as_str())
    }

    pub(crate) fn media_type_text(&self) -> &str {
        &self.media_type
    }
}
