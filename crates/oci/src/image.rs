use std::fs::File;

use crate::limits::MAX_LAYER_BYTES;
use crate::manifest::Manifest;
use crate::{
    Compression, Descriptor, Digest, Error, ImageConfig, Layout, MediaType, Platform, Result, Verified,
};

/// An image of a layout, its documents verified and its configuration parsed. Its layers are verified as they
/// are read.
#[derive(Clone, Debug)]
pub struct Image {
    /// Digest of the manifest: the identity of the image.
    pub digest: Digest,
    /// The parsed configuration.
    pub config: ImageConfig,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
}

/// One layer of an image.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(crate) layout: Layout,
    /// The compressed blob.
    pub descriptor: Descriptor,
    /// How it is compressed.
    pub compression: Compression,
    /// The digest of the decompressed archive, as the image's configuration has it.
    pub diff_id: Digest,
}

impl Layer {
    pub(crate) fn open(&self) -> Result<Verified<File>> {
        self.layout.blob(&self.descriptor)
    }
}

impl Image {
    pub(crate) fn load(
        layout: &Layout,
        at: Descriptor,
        manifest: &Manifest,
        platform: &Platform,
    ) -> Result<Self> {
        let what = at.digest.to_string();
        if manifest.config.media_type() != MediaType::Config {
            return Err(Error::MediaType {
                what,
                found: manifest.config.media_type_text().to_owned(),
                expected: "an image configuration",
            });
        }
        let config = ImageConfig::parse(&layout.document(&manifest.config)?)?;
        if config.platform.serves(platform).is_none() {
            return Err(Error::Platform {
                what,
                wanted: platform.clone(),
                available: config.platform.to_string(),
            });
        }
        if config.diff_ids.len() != manifest.layers.len() {
            return Err(Error::config(
                "rootfs.diff_ids",
                format!("{} digests for {} layers", config.diff_ids.len(), manifest.layers.len()),
            ));
        }
        let mut layers = Vec::with_capacity(manifest.layers.len());
        for (n, (descriptor, diff_id)) in manifest.layers.iter().zip(&config.diff_ids).enumerate() {
            let what = format!("{what}, layers[{n}]");
            if !descriptor.urls.is_empty() {
                return Err(Error::document(what, "urls: layers from foreign addresses are not fetched"));
            }
            if descriptor.size > MAX_LAYER_BYTES {
                return Err(Error::Limit {
                    what,
                    name: "MAX_LAYER_BYTES",
                    limit: MAX_LAYER_BYTES,
                    unit: "bytes",
                });
            }
            layers.push(Layer {
                layout: layout.clone(),
                compression: Compression::of_layer(&what, &descriptor.media_type())?,
                descriptor: descriptor.clone(),
                diff_id: diff_id.clone(),
            });
        }
        Ok(Self { digest: at.digest, config, layers })
    }
}
