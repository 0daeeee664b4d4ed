use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{MAX_INDEX_ENTRIES, MAX_LAYERS};
use crate::{Descriptor, Error, MediaType, Result};

/// An OCI index or Docker manifest list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    pub manifests: Vec<Descriptor>,
}

/// An OCI or Docker (schema 2) manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

/// Parses a document that must be the one thing and not the other.
///
/// A document that is a manifest to one reader and an index to another is how CVE-2021-41190 worked, so a field
/// of the other kind, or a media type that contradicts the descriptor, is refused.
fn object(what: &str, bytes: &[u8], is: MediaType, foreign: &[&str]) -> Result<Value> {
    let value: Value = serde_json::from_slice(bytes).map_err(|e| Error::document(what, e.to_string()))?;
    let Some(fields) = value.as_object() else {
        return Err(Error::document(what, "a JSON object is needed"));
    };
    if let Some(field) = foreign.iter().find(|f| fields.contains_key(**f)) {
        return Err(Error::document(
            what,
            format!("{field}: does not belong into {is}; the document is ambiguous"),
        ));
    }
    if fields.get("schemaVersion").and_then(Value::as_u64) != Some(2) {
        return Err(Error::document(what, "schemaVersion: must be 2; convert the image with a current tool"));
    }
    match fields.get("mediaType") {
        None => {}
        Some(Value::String(said)) if MediaType::from(said.as_str()) == is => {}
        Some(said) => {
            return Err(Error::document(
                what,
                format!("mediaType: {said} contradicts the descriptor's {is}"),
            ));
        }
    }
    Ok(value)
}

impl Index {
    pub(crate) fn parse(what: &str, bytes: &[u8]) -> Result<Self> {
        let value = object(what, bytes, MediaType::Index, &["layers", "config", "fsLayers"])?;
        let index: Self = serde_json::from_value(value).map_err(|e| Error::document(what, e.to_string()))?;
        if index.manifests.len() > MAX_INDEX_ENTRIES {
            return Err(Error::Limit {
                what: what.to_owned(),
                name: "MAX_INDEX_ENTRIES",
                limit: MAX_INDEX_ENTRIES as u64,
                unit: "entries",
            });
        }
        Ok(index)
    }
}

impl Manifest {
    pub(crate) fn parse(what: &str, bytes: &[u8]) -> Result<Self> {
        let value = object(what, bytes, MediaType::Manifest, &["manifests", "fsLayers"])?;
        let manifest: Self =
            serde_json::from_value(value).map_err(|e| Error::document(what, e.to_string()))?;
        if manifest.layers.len() > MAX_LAYERS {
            return Err(Error::Limit {
                what: what.to_owned(),
                name: "MAX_LAYERS",
                limit: MAX_LAYERS as u64,
                unit: "layers",
            });
        }
        Ok(manifest)
    }
}
