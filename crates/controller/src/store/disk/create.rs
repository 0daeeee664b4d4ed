use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Secrets are in the store: its owner alone may read it.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Creates a file that is complete before it has its name, and never replaces one that has it. `false`: it was there.
///
/// So a crash leaves no half of a file, and of two processes that create the same file one gets the other's.
pub(super) fn create<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<bool, E> {
    let directory = directory(path);
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&directory)?;
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let draft = directory.join(format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4()));
    let created = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&draft);
    let created = created.map_err(E::from).and_then(|_| fill(&draft)).and_then(|()| {
        File::open(&draft)?.sync_all()?;
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => Ok(linked.map(|()| true)?),
        }
    });
    // Nobody but this function knows the name.
    let _ = fs::remove_file(&draft);
    File::open(&directory)?.sync_all()?;
    created
}

/// Refuses what is not a file (opening a pipe would wait for ever) and takes the rights of others from it.
pub(super) fn secure(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
