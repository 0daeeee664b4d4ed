use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;

use super::apply::{Applier, Failure};
use super::remove_tree;
use super::tree::{Stop, Tree};
use crate::compression::{Decompressor, TOO_LONG};
use crate::tarball::{Reader, TarError};
use crate::{Error, Layer, Limits, Result, Verified};

/// Whose the files will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// The image's owners. Needs root.
    Keep,
    /// The user who unpacks.
    Squash,
}

/// How an image is unpacked.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it may use.
    pub limits: Limits,
    /// Whose the files will be.
    pub owners: Owners,
    /// Make device nodes, where we are root. Otherwise they are skipped and counted.
    pub devices: bool,
    /// Write everything to the disk before the destination becomes visible.
    pub sync: bool,
}

impl Default for Options {
    /// The image's owners where we are root; no devices; written to disk.
    fn default() -> Self {
        let owners = if is_root() { Owners::Keep } else { Owners::Squash };
        Self { limits: Limits::default(), owners, devices: false, sync: true }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What was unpacked and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Entries of all layers.
    pub entries: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Device nodes left out.
    pub devices_skipped: u64,
    /// Extended attributes left out: not allowed, or not supported by the file system.
    pub xattrs_dropped: u64,
}

/// Unpacks layers, lowest first, into one directory: digests and sizes verified, whiteouts applied, everything
/// bounded. `dest` appears when all of it is there, and not at all otherwise.
///
/// # Errors
/// [`Error::Exists`] where `dest` is there already (perhaps made by another process in the meantime);
/// otherwise whatever is wrong with the image, by layer and entry, or the system's answer.
pub fn unpack(layers: &[Layer], dest: &Path, options: &Options) -> Result<Report> {
    if layers.len() > options.limits.layers {
        return Err(Error::Limit {
            what: dest.display().to_string(),
            name: "MAX_LAYERS",
            limit: options.limits.layers as u64,
            unit: "layers",
        });
    }
    if dest.symlink_metadata().is_ok() {
        return Err(Error::Exists { path: dest.display().to_string() });
    }
    let staging = Staging::create(dest)?;
    let report = fill(layers, &staging.path, options)?;
    if options.sync {
        let root = open_dir(&staging.path)?;
        rustix::fs::syncfs(&root).map_err(|e| Error::io("writing the image to disk", e))?;
    }
    staging.publish(dest, options.sync)?;
    Ok(report)
}

fn fill(layers: &[Layer], root: &Path, options: &Options) -> Result<Report> {
    let failed = |e: Errno| Error::io(root.display().to_string(), e);
    let tree = Tree::new(open_dir(root)?, options.limits.depth).map_err(failed)?;
    let mut applier = Applier { tree, options, report: Report::default(), privileged: is_root() };
    for (number, layer) in layers.iter().enumerate() {
        applier.tree.begin_layer();
        one_layer(&mut applier, number, layer)?;
    }
    let dropped = applier.tree.finish(options.owners == Owners::Keep).map_err(|stop| match stop {
        Stop::Entry(problem) => Error::document(root.display().to_string(), problem),
        Stop::System(e) => failed(e),
    })?;
    let mut report = applier.report;
    report.xattrs_dropped += dropped;
    Ok(report)
}

fn one_layer(applier: &mut Applier<'_>, number: usize, layer: &Layer) -> Result<()> {
    let what = format!("layer {number}");
    let limits = &applier.options.limits;
    let (max_entries, max_bytes) = (limits.entries, limits.unpacked_bytes);
    let too_large = || Error::Limit {
        what: what.clone(),
        name: "MAX_UNPACKED_BYTES",
        limit: max_bytes,
        unit: "bytes unpacked",
    };
    let read_error = |e: std::io::Error| {
        if e.to_string() == TOO_LONG { too_large() } else { Error::io(format!("reading {what}"), e) }
    };
    // Headers and padding come on top of what the files hold.
    let stream_limit = max_bytes.saturating_add(max_entries.saturating_mul(2048));
    let plain = Decompressor::new(layer.open()?, layer.compression, stream_limit).map_err(read_error)?;
    let plain = Verified::new(plain, format!("{what} decompressed (diff_id)"), layer.diff_id.clone(), None);
    let mut reader = Reader::new(plain);
    loop {
        let entry = match reader.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(TarError::Io(e)) => return Err(read_error(e)),
            Err(TarError::Malformed { path, problem }) => return Err(at(number, &path, problem)),
        };
        applier.report.entries += 1;
        if applier.report.entries > max_entries {
            return Err(Error::Limit { what, name: "MAX_ENTRIES", limit: max_entries, unit: "entries" });
        }
        applier.apply(&entry, &mut reader).map_err(|failure| match failure {
            Failure::Entry(problem) => at(number, &entry.path, problem),
            Failure::Read(e) => read_error(e),
            Failure::Write(e) => Error::io(format!("{what}, entry {:?}", shown(&entry.path)), e),
            Failure::TooLarge => too_large(),
        })?;
    }
    // What follows the archive belongs to the digests too.
    let mut plain = reader.into_inner();
    plain.check().map_err(|e| match e {
        Error::Io { source, .. } => read_error(source),
        other => other,
    })?;
    plain.into_inner().into_inner().finish()
}

fn at(layer: usize, path: &[u8], problem: String) -> Error {
    Error::Entry { layer, path: shown(path), problem }
}

/// A hostile name as text of a sensible length.
fn shown(path: &[u8]) -> String {
    let start = path.get(..path.len().min(200)).unwrap_or_default();
    String::from_utf8_lossy(start).into_owned()
}

fn open_dir(path: &Path) -> Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|e| Error::io(path.display().to_string(), e))
}

/// A private directory beside the destination; gone when it is dropped before being published.
struct Staging {
    parent: PathBuf,
    path: PathBuf,
    published: bool,
}

impl Staging {
    fn create(dest: &Path) -> Result<Self> {
        let parent = match dest.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        };
        let dir = tempfile::Builder::new()
            .prefix(".unpack-")
            .tempdir_in(&parent)
            .map_err(|e| Error::io(format!("a directory in {}", parent.display()), e))?;
        // Removal is ours: a plain one stops at directories without write permission.
        Ok(Self { parent, path: dir.keep(), published: false })
    }

    fn publish(mut self, dest: &Path, sync: bool) -> Result<()> {
        match renameat_with(CWD, &self.path, CWD, dest, RenameFlags::NOREPLACE) {
            Ok(()) => self.published = true,
            Err(Errno::EXIST) => return Err(Error::Exists { path: dest.display().to_string() }),
            Err(e) => return Err(Error::io(format!("renaming to {}", dest.display()), e)),
        }
        if sync {
            let parent = open_dir(&self.parent)?;
            rustix::fs::fsync(&parent).map_err(|e| Error::io(self.parent.display().to_string(), e))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published
            && let Err(e) = remove_tree(&self.path)
        {
            tracing::warn!("an unfinished image stays behind: {e}");
        }
    }
}
