use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fchmod, openat, unlinkat};
use rustix::io::Errno;

use crate::{Error, Result};

/// Removes a directory tree that an image made, whatever its modes are. Links are removed, never followed.
///
/// # Errors
/// Where something in it cannot be removed. A path that is not there is success.
pub fn remove_tree(path: &Path) -> Result<()> {
    match remove(CWD, path.as_os_str().as_encoded_bytes(), 0) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(Error::io(format!("removing {}", path.display()), e)),
    }
}

/// One more than any tree that is unpacked here, for the root directory. What a workload made may be deeper.
const MAX_DEPTH: u32 = 512;

fn remove(parent: impl std::os::fd::AsFd, name: &[u8], depth: u32) -> rustix::io::Result<()> {
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(&parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // An image's directory without read permission, and we are not root.
            rustix::fs::chmodat(&parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(&parent, name, flags, Mode::empty())?
        }
        other => other?,
    };
    // Without write permission nothing in it can be removed; where that fails, the removal says so.
    let _ = fchmod(&fd, Mode::RWXU);
    let mut names = Vec::new();
    for item in Dir::read_from(&fd)? {
        let name = item?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    for name in names {
        remove(&fd, &name, depth + 1)?;
    }
    unlinkat(&parent, name, AtFlags::REMOVEDIR)
}
