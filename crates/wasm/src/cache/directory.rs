//! The directory of compiled modules: ours alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;

use super::artifact::KEY;
use crate::CacheError;

const KEY_FILE: &str = "key";
/// What compiled modules end in.
const SUFFIX: &str = ".compiled";
/// The largest compiled module that is read: some 20 times the largest module.
const MAX_FILE: u64 = 1 << 30;

/// A directory that only this user can read and write, and its key.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    key: [u8; KEY],
}

impl Directory {
    /// Opens it, and makes it if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Self, CacheError> {
        let io = |source| CacheError::Io { path: path.to_owned(), source };
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io(e)),
        }
        let unsafe_because =
            |problem: String, remedy| CacheError::Unsafe { path: path.to_owned(), problem, remedy };
        let meta = fs::symlink_metadata(path).map_err(io)?;
        if !meta.is_dir() {
            return Err(unsafe_because(
                "it is not a directory".into(),
                "name the directory itself, not a link to it",
            ));
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(unsafe_because(
                format!("it belongs to user {}", meta.uid()),
                "use a directory of your own",
            ));
        }
        if meta.mode() & 0o077 != 0 {
            let mode = meta.mode() & 0o777;
            return Err(unsafe_because(
                format!("others may use it (mode {mode:03o})"),
                "run chmod 700 on it",
            ));
        }
        let key = key(&path.join(KEY_FILE))
            .map_err(|source| CacheError::Io { path: path.join(KEY_FILE), source })?;
        Ok(Self { path: path.to_owned(), key })
    }

    pub(super) fn key(&self) -> &[u8; KEY] {
        &self.key
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension(SUFFIX.trim_start_matches('.'))
    }

    /// Reads a file into memory, if it is there and only we can have written it.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match read_own(&self.path_of(name), MAX_FILE) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes a file; readers see all of it or nothing.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile_in(&self.path)?;
        file.write_all(bytes)?;
        file.persist(self.path_of(name)).map_err(|e| e.error)?;
        Ok(())
    }

    /// Marks a file as used now.
    pub(super) fn touch(&self, name: &str) {
        // Its age only decides what goes first when room is needed.
        let _ = File::options()
            .append(true)
            .open(self.path_of(name))
            .and_then(|f| f.set_modified(SystemTime::now()));
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) {
        // It is replaced or unreadable anyway.
        let _ = fs::remove_file(self.path_of(name));
    }

    /// Removes the files unused for longest until all together have at most this many bytes.
    pub(super) fn shrink(&self, budget: u64) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_file() && entry.file_name().to_string_lossy().ends_with(SUFFIX) {
                files.push((meta.modified()?, meta.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= budget {
                break;
            }
            fs::remove_file(path)?;
            total -= size;
        }
        Ok(())
    }
}

/// Reads the key, or makes one. Whoever makes it first wins; a bad one is replaced, which only
/// means that modules are compiled again.
fn key(path: &Path) -> io::Result<[u8; KEY]> {
    let read =
        || read_own(path, KEY as u64).and_then(|bytes| <[u8; KEY]>::try_from(bytes).map_err(|_| short()));
    match read() {
        Ok(key) => return Ok(key),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the key of compiled modules is not usable and is made anew");
            fs::remove_file(path)?;
        }
    }
    let mut key = [0; KEY];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o600)).tempfile_in(directory)?;
    file.write_all(&key)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => read(),
        Err(e) => Err(e.error),
    }
}

fn short() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it has the wrong length")
}

/// Reads a regular file that belongs to us and that nobody else may write, through the one handle
/// that was checked.
fn read_own(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Not blocking: a FIFO put there must not hang the reader.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let meta = file.metadata()?;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    if !meta.is_file() {
        return refused("it is not a regular file");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        return refused("others may use it");
    }
    if meta.len() > limit {
        return refused("it is too large");
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
