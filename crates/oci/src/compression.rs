use std::io::{self, BufReader, Read};

use crate::limits::MAX_ZSTD_WINDOW_LOG;
use crate::{Error, MediaType, Result};

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one or more members.
    Gzip,
    /// zstd, one or more frames.
    Zstd,
}

impl Compression {
    /// The compression that a layer's media type names.
    ///
    /// # Errors
    /// [`Error::MediaType`] for anything that is not a layer that can be unpacked. Layers that may not be
    /// distributed (foreign layers, which name URLs of their own) are among those.
    pub fn of_layer(what: &str, media_type: &MediaType) -> Result<Self> {
        match media_type {
            MediaType::LayerTar => Ok(Self::None),
            MediaType::LayerGzip => Ok(Self::Gzip),
            MediaType::LayerZstd => Ok(Self::Zstd),
            other => Err(Error::MediaType {
                what: what.to_owned(),
                found: other.to_string(),
                expected: "a distributable tar layer, plain or with gzip or zstd",
            }),
        }
    }
}

/// A bounded reader of the decompressed bytes. `R` stays reachable, so that what the decompressor did not
/// consume can be verified too.
pub(crate) struct Decompressor<R: Read> {
    inner: Inner<R>,
    left: u64,
}

enum Inner<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<R>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<R>>>),
}

/// The error's text by which callers recognise that the bound was reached.
pub(crate) const TOO_LONG: &str = "decompressed data is longer than allowed";
const BUFFER: usize = 64 << 10;

impl<R: Read> Decompressor<R> {
    /// A reader that gives at most `limit` bytes and fails with [`TOO_LONG`] where there would be more.
    pub(crate) fn new(reader: R, compression: Compression, limit: u64) -> io::Result<Self> {
        let reader = BufReader::with_capacity(BUFFER, reader);
        let inner = match compression {
            Compression::None => Inner::Plain(reader),
            Compression::Gzip => Inner::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(reader))),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(reader)?;
                decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
                Inner::Zstd(Box::new(decoder))
            }
        };
        Ok(Self { inner, left: limit })
    }

    /// The compressed stream, with what was not consumed still in it (except for what was buffered, which the
    /// reader below has seen already).
    pub(crate) fn into_inner(self) -> R {
        match self.inner {
            Inner::Plain(r) => r.into_inner(),
            Inner::Gzip(d) => d.into_inner().into_inner(),
            Inner::Zstd(d) => d.finish().into_inner(),
        }
    }
}

impl<R: Read> Read for Decompressor<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.inner {
            Inner::Plain(r) => r.read(buffer),
            Inner::Gzip(r) => r.read(buffer),
            Inner::Zstd(r) => r.read(buffer),
        }?;
        match self.left.checked_sub(n as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(TOO_LONG)),
        }
        Ok(n)
    }
}
