use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::layout::REF_NAME;
use crate::manifest::{Index, Manifest};
use crate::reference::is_tag;
use crate::{Descriptor, Digest, Error, ImageConfig, Layout, MediaType, Platform, Result};

/// Writes a layout: small images from files, and flights. Always the same bytes for the same input.
///
/// It is for demonstrations, tests and single static programs, not for building images in general.
#[derive(Debug)]
pub struct LayoutBuilder {
    dir: PathBuf,
}

/// One file of an image.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// Path in the image, for example `usr/bin/app`.
    pub path: String,
    /// Content.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

/// A small image.
#[derive(Clone, Debug, Default)]
pub struct ImageSpec {
    /// Its files, in one layer, all owned by root.
    pub files: Vec<FileSpec>,
    /// First part of the command line.
    pub entrypoint: Vec<String>,
    /// Second part of the command line.
    pub cmd: Vec<String>,
    /// Environment as NAME=VALUE.
    pub env: Vec<String>,
    /// `USER[:GROUP]`, empty for root.
    pub user: String,
    /// Where it starts, empty for `/`.
    pub working_dir: String,
    /// The signal that asks it to stop, empty for SIGTERM.
    pub stop_signal: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What it runs on; this machine's platform where there is none.
    pub platform: Option<Platform>,
}

impl LayoutBuilder {
    /// Begins a layout in a directory, or goes on with the one that is there.
    ///
    /// # Errors
    /// Where the directory cannot be written or holds a layout that cannot be read.
    pub fn create(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let blobs = dir.join("blobs/sha256");
        std::fs::create_dir_all(&blobs).map_err(|e| Error::io(blobs.display().to_string(), e))?;
        let builder = Self { dir };
        if !builder.dir.join("index.json").exists() {
            builder.write("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
            builder.write_index(&Index {
                schema_version: 2,
                media_type: Some(MediaType::Index.to_string()),
                manifests: Vec::new(),
            })?;
        }
        Layout::open(&builder.dir)?;
        Ok(builder)
    }

    /// Adds an image under a tag, in place of what had it before.
    ///
    /// # Errors
    /// Where the specification would make an image that [`ImageConfig::parse`] refuses, or writing fails.
    pub fn image(&self, tag: &str, spec: &ImageSpec) -> Result<Digest> {
        let archive = archive(&spec.files)?;
        let layer = self.blob(&MediaType::LayerGzip, &gzip(&archive)?)?;
        let platform = spec.platform.clone().unwrap_or_else(Platform::host);
        let config = json!({
            "architecture": platform.architecture,
            "os": platform.os,
            "variant": platform.variant,
            "config": {
                "Entrypoint": spec.entrypoint,
                "Cmd": spec.cmd,
                "Env": spec.env,
                "User": spec.user,
                "WorkingDir": spec.working_dir,
                "StopSignal": spec.stop_signal,
                "Labels": spec.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(&archive)]},
        });
        let config = config.to_string().into_bytes();
        ImageConfig::parse(&config)?;
        let config = self.blob(&MediaType::Config, &config)?;
        self.manifest(tag, config, vec![layer])
    }

    /// Adds a flight under a tag, in Yoke's media types, in place of what had it before.
    ///
    /// # Errors
    /// Where the tag is malformed or writing fails.
    pub fn flight(&self, tag: &str, module: &[u8]) -> Result<Digest> {
        let config =
            json!({"architecture": "", "os": "", "config": {}, "rootfs": {"type": "", "diff_ids": null}});
        let config = self.blob(&MediaType::FlightConfig, config.to_string().as_bytes())?;
        let layer = self.blob(&MediaType::FlightModule, &gzip(module)?)?;
        self.manifest(tag, config, vec![layer])
    }

    fn manifest(&self, tag: &str, config: Descriptor, layers: Vec<Descriptor>) -> Result<Digest> {
        if !is_tag(tag) {
            return Err(Error::Reference { reference: tag.to_owned(), problem: "not a tag".to_owned() });
        }
        let manifest =
            Manifest { schema_version: 2, media_type: Some(MediaType::Manifest.to_string()), config, layers };
        let mut descriptor = self.blob(&MediaType::Manifest, &to_json(&manifest)?)?;
        let digest = descriptor.digest.clone();
        descriptor.annotations.insert(REF_NAME.to_owned(), tag.to_owned());
        let path = self.dir.join("index.json");
        let bytes = std::fs::read(&path).map_err(|e| Error::io(path.display().to_string(), e))?;
        let mut index = Index::parse(&path.display().to_string(), &bytes)?;
        index.manifests.retain(|d| d.annotations.get(REF_NAME).map(String::as_str) != Some(tag));
        index.manifests.push(descriptor);
        self.write_index(&index)?;
        Ok(digest)
    }

    fn blob(&self, media_type: &MediaType, bytes: &[u8]) -> Result<Descriptor> {
        let digest = Digest::of(bytes);
        let name = format!("blobs/{}/{}", digest.algorithm(), digest.hex());
        if !self.dir.join(&name).exists() {
            self.write(&name, bytes)?;
        }
        Ok(Descriptor::new(media_type, digest, bytes.len() as u64))
    }

    fn write_index(&self, index: &Index) -> Result<()> {
        self.write("index.json", &to_json(index)?)
    }

    /// Writes beside and renames, so that a reader sees the old file or the new one.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        let what = || path.display().to_string();
        let parent = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(parent).map_err(|e| Error::io(what(), e))?;
        file.write_all(bytes).map_err(|e| Error::io(what(), e))?;
        file.persist(&path).map_err(|e| Error::io(what(), e.error))?;
        Ok(())
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::document("a new document", e.to_string()))
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).map_err(|e| Error::io("compressing", e))?;
    encoder.finish().map_err(|e| Error::io("compressing", e))
}

fn archive(files: &[FileSpec]) -> Result<Vec<u8>> {
    let failed = |e| Error::io("packing a layer", e);
    let mut archive = tar::Builder::new(Vec::new());
    let mut dirs = std::collections::BTreeSet::new();
    for file in files {
        let path = file.path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            let dir = path.get(..=at).unwrap_or_default();
            if dirs.insert(dir.to_owned()) {
                let mut header = header(tar::EntryType::Directory, 0o755, 0);
                archive.append_data(&mut header, dir, std::io::empty()).map_err(failed)?;
            }
        }
        let mut header = header(tar::EntryType::Regular, file.mode, file.content.len() as u64);
        archive.append_data(&mut header, path, file.content.as_slice()).map_err(failed)?;
    }
    archive.into_inner().map_err(failed)
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
