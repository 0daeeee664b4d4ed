use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use crate::limits::{MAX_DOCUMENT_BYTES, MAX_INDEX_DEPTH};
use crate::manifest::{Index, Manifest};
use crate::reference::is_tag;
use crate::{Descriptor, Digest, Error, Image, MediaType, Platform, Result, Verified};

/// Which image of a layout is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// The only one there is.
    #[default]
    Only,
    /// The one with this tag (`org.opencontainers.image.ref.name`).
    Tag(String),
    /// The one with this digest.
    Digest(Digest),
}

impl Selector {
    /// Reads a tag or a digest.
    ///
    /// # Errors
    /// [`Error::Reference`] for what is neither.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            Ok(Self::Only)
        } else if text.contains(':') {
            Ok(Self::Digest(text.parse()?))
        } else if is_tag(text) {
            Ok(Self::Tag(text.to_owned()))
        } else {
            Err(Error::Reference {
                reference: text.to_owned(),
                problem: "neither a tag nor a digest".to_owned(),
            })
        }
    }
}

/// An OCI image layout: a directory with `oci-layout`, `index.json` and `blobs/` (OCI's image-layout.md).
#[derive(Clone, Debug)]
pub struct Layout {
    dir: PathBuf,
    index: Index,
}

pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";

impl Layout {
    /// Opens a layout and reads its index.
    ///
    /// # Errors
    /// Where the directory is not a layout of version 1, or its index is malformed or too large.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let marker = read_small(&dir.join("oci-layout"))?;
        let what = dir.join("oci-layout").display().to_string();
        let marker: Value =
            serde_json::from_slice(&marker).map_err(|e| Error::document(&what, e.to_string()))?;
        let version = marker.get("imageLayoutVersion").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("1.") {
            return Err(Error::document(
                what,
                format!("imageLayoutVersion: {version:?} is not known; 1.0.0 is needed"),
            ));
        }
        let path = dir.join("index.json");
        let index = Index::parse(&path.display().to_string(), &read_small(&path)?)?;
        Ok(Self { dir, index })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The tags in the index, in its order.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.index.manifests.iter().filter_map(|d| d.annotations.get(REF_NAME)).map(String::as_str)
    }

    /// Opens a blob. The reader stops at the descriptor's size, and [`Verified::finish`] compares the digest.
    ///
    /// # Errors
    /// Where the blob is missing, is not a regular file, or has another size.
    pub fn blob(&self, descriptor: &Descriptor) -> Result<Verified<File>> {
        let digest = &descriptor.digest;
        let path = self.dir.join("blobs").join(digest.algorithm()).join(digest.hex());
        let (file, size) = open_regular(&path)?;
        if size != descriptor.size {
            return Err(Error::Size {
                what: path.display().to_string(),
                expected: descriptor.size,
                found: size,
            });
        }
        Ok(Verified::new(file, path.display().to_string(), digest.clone(), Some(descriptor.size)))
    }

    /// A whole, verified document: a manifest, an index or a configuration.
    pub(crate) fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        self.bounded(descriptor, "MAX_DOCUMENT_BYTES", MAX_DOCUMENT_BYTES)
    }

    pub(crate) fn bounded(&self, descriptor: &Descriptor, name: &'static str, limit: u64) -> Result<Vec<u8>> {
        let what = descriptor.digest.to_string();
        if descriptor.size > limit {
            return Err(Error::Limit { what, name, limit, unit: "bytes" });
        }
        let mut reader = self.blob(descriptor)?;
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|e| Error::io(what, e))?;
        reader.finish()?;
        Ok(bytes)
    }

    /// The image that is meant, in the variant for `platform`.
    ///
    /// # Errors
    /// Where there is none, where it is not unambiguous, or where a document or configuration is refused.
    pub fn image(&self, select: &Selector, platform: &Platform) -> Result<Image> {
        let (descriptor, manifest) = self.manifest(select, platform)?;
        Image::load(self, descriptor, &manifest, platform)
    }

    /// The manifest that is meant. Artifacts have no platform, so theirs is chosen without looking at it.
    pub(crate) fn manifest(&self, select: &Selector, platform: &Platform) -> Result<(Descriptor, Manifest)> {
        let mut candidates = self.candidates(select)?;
        for _ in 0..MAX_INDEX_DEPTH {
            let descriptor = self.choose(&candidates, select, platform)?;
            let what = descriptor.digest.to_string();
            match descriptor.media_type() {
                MediaType::Manifest => {
                    let manifest = Manifest::parse(&what, &self.document(&descriptor)?)?;
                    return Ok((descriptor, manifest));
                }
                MediaType::Index => candidates = Index::parse(&what, &self.document(&descriptor)?)?.manifests,
                other => {
                    return Err(Error::MediaType {
                        what,
                        found: other.to_string(),
                        expected: "an image manifest or index",
                    });
                }
            }
        }
        Err(Error::Limit {
            what: self.describe(select),
            name: "MAX_INDEX_DEPTH",
            limit: MAX_INDEX_DEPTH as u64,
            unit: "nested indexes",
        })
    }

    fn candidates(&self, select: &Selector) -> Result<Vec<Descriptor>> {
        let all = &self.index.manifests;
        let found: Vec<Descriptor> = match select {
            Selector::Only => {
                // Several tags of one image are still one image.
                let mut found: Vec<Descriptor> = Vec::new();
                for d in all {
                    if !found.iter().any(|f| f.digest == d.digest) {
                        found.push(d.clone());
                    }
                }
                let tagged = found.iter().filter(|d| d.annotations.contains_key(REF_NAME)).count();
                if found.len() > 1 && tagged > 0 {
                    return Err(self.missing("an image without a tag (there are several)"));
                }
                found
            }
            Selector::Tag(tag) => {
                all.iter().filter(|d| d.annotations.get(REF_NAME) == Some(tag)).cloned().collect()
            }
            Selector::Digest(digest) => all.iter().filter(|d| d.digest == *digest).take(1).cloned().collect(),
        };
        if found.is_empty() { Err(self.missing(&self.describe(select))) } else { Ok(found) }
    }

    fn choose(&self, from: &[Descriptor], select: &Selector, wanted: &Platform) -> Result<Descriptor> {
        if let [only] = from
            && only.platform.is_none()
        {
            return Ok(only.clone());
        }
        let mut best: Option<(u32, &Descriptor)> = None;
        for d in from {
            let Some(score) = d.platform.as_ref().and_then(|p| p.serves(wanted)) else { continue };
            if best.is_none_or(|(b, _)| score > b) {
                best = Some((score, d));
            }
        }
        best.map(|(_, d)| d.clone()).ok_or_else(|| Error::Platform {
            what: self.describe(select),
            wanted: wanted.clone(),
            available: list(from.iter().map(|d| match &d.platform {
                Some(p) => p.to_string(),
                None => "an unnamed platform".to_owned(),
            })),
        })
    }

    pub(crate) fn describe(&self, select: &Selector) -> String {
        match select {
            Selector::Only => self.dir.display().to_string(),
            Selector::Tag(tag) => format!("tag {tag:?}"),
            Selector::Digest(digest) => digest.to_string(),
        }
    }

    fn missing(&self, what: &str) -> Error {
        Error::NotFound {
            what: what.to_owned(),
            place: self.dir.display().to_string(),
            available: list(self.tags().map(|t| format!("tag {t:?}"))),
        }
    }
}

/// Most names that an error message lists.
const MAX_LISTED: usize = 16;

fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.take(MAX_LISTED + 1).collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    if names.len() > MAX_LISTED {
        names.truncate(MAX_LISTED);
        names.push("...".to_owned());
    }
    names.join(", ")
}

/// Opens a regular file for reading. A layout is someone else's directory: a link, a pipe or a device in the
/// place of a blob is refused instead of followed or waited for.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let what = || path.display().to_string();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io(what(), e))?;
    let file = File::from(fd);
    let meta = file.metadata().map_err(|e| Error::io(what(), e))?;
    if !meta.is_file() {
        return Err(Error::document(what(), "not a regular file"));
    }
    Ok((file, meta.len()))
}

fn read_small(path: &Path) -> Result<Vec<u8>> {
    let what = || path.display().to_string();
    let (file, size) = open_regular(path)?;
    let limit = || Error::Limit {
        what: what(),
        name: "MAX_DOCUMENT_BYTES",
        limit: MAX_DOCUMENT_BYTES,
        unit: "bytes",
    };
    if size > MAX_DOCUMENT_BYTES {
        return Err(limit());
    }
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io(what(), e))?;
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES { Err(limit()) } else { Ok(bytes) }
}
