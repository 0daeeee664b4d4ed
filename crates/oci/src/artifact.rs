use std::io::Read;

use crate::compression::{Decompressor, TOO_LONG};
use crate::limits::MAX_MODULE_BYTES;
use crate::{Compression, Error, Layout, MediaType, Platform, Result, Selector};

impl Layout {
    /// The wasm module of a flight: a manifest whose configuration has Yoke's media type, with the module as
    /// its first layer of Yoke's other type.
    ///
    /// # Errors
    /// Where it is not such an artifact, is damaged, or the module is larger than
    /// [`MAX_MODULE_BYTES`](crate::limits::MAX_MODULE_BYTES).
    pub fn flight_module(&self, select: &Selector) -> Result<Vec<u8>> {
        let (at, manifest) = self.manifest(select, &Platform::host())?;
        let what = at.digest.to_string();
        if manifest.config.media_type() != MediaType::FlightConfig {
            return Err(Error::MediaType {
                what,
                found: manifest.config.media_type_text().to_owned(),
                expected: "the configuration type of a flight, application/vnd.yoke.config.v1+json,",
            });
        }
        // Its content carries nothing, but a blob that is not what it promises is refused all the same.
        self.document(&manifest.config)?;
        let layer = manifest
            .layers
            .iter()
            .find(|l| l.media_type() == MediaType::FlightModule)
            .ok_or_else(|| Error::document(&what, "layers: none is application/vnd.yoke.wasm.gzip"))?;
        let limit = || Error::Limit {
            what: what.clone(),
            name: "MAX_MODULE_BYTES",
            limit: MAX_MODULE_BYTES,
            unit: "bytes",
        };
        if layer.size > MAX_MODULE_BYTES {
            return Err(limit());
        }
        let failed = |e: std::io::Error| {
            if e.to_string() == TOO_LONG { limit() } else { Error::io(format!("{what}, the module"), e) }
        };
        let mut reader =
            Decompressor::new(self.blob(layer)?, Compression::Gzip, MAX_MODULE_BYTES).map_err(failed)?;
        let mut module = Vec::new();
        reader.read_to_end(&mut module).map_err(failed)?;
        reader.into_inner().finish()?;
        Ok(module)
    }
}
