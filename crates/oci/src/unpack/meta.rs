use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use crate::tarball::{Entry, Mtime};

/// What is set on a file or directory once its content is there.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: Mtime,
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Meta {
    /// A directory that no layer describes: root's, 0755, of 1970.
    pub(crate) fn implicit() -> Self {
        Self { mode: 0o755, uid: 0, gid: 0, mtime: Mtime::default(), xattrs: Vec::new() }
    }

    /// The entry's own, with the extended attributes that may be kept; and how many may not.
    pub(crate) fn of(entry: &Entry, privileged: bool) -> (Self, u64) {
        let xattrs: Vec<_> = entry.xattrs.iter().filter(|(k, _)| keeps(k, privileged)).cloned().collect();
        let dropped = (entry.xattrs.len() - xattrs.len()) as u64;
        let meta = Self { mode: entry.mode, uid: entry.uid, gid: entry.gid, mtime: entry.mtime, xattrs };
        (meta, dropped)
    }

    pub(crate) fn times(&self) -> Timestamps {
        let time = Timespec { tv_sec: self.mtime.secs, tv_nsec: self.mtime.nanos.into() };
        Timestamps { last_access: time, last_modification: time }
    }

    pub(crate) fn owner(&self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }

    /// Sets everything on an open file. The order matters: a change of owner clears setuid and capabilities.
    /// Returns how many attributes the file system would not take.
    pub(crate) fn set(&self, fd: impl AsFd, keep_owner: bool) -> rustix::io::Result<u64> {
        let fd = fd.as_fd();
        if keep_owner {
            let (uid, gid) = self.owner();
            rustix::fs::fchown(fd, uid, gid)?;
        }
        rustix::fs::fchmod(fd, Mode::from_raw_mode(self.mode))?;
        let mut dropped = 0;
        for (name, value) in &self.xattrs {
            match rustix::fs::fsetxattr(fd, name.as_slice(), value, XattrFlags::empty()) {
                Ok(()) => {}
                Err(Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => dropped += 1,
                Err(e) => return Err(e),
            }
        }
        rustix::fs::futimens(fd, &self.times())?;
        Ok(dropped)
    }
}

/// Attributes of the user, except those by which an overlay in user mode is steered; and file capabilities,
/// where we are root. Everything else (`trusted.overlay.*` above all) is the system's.
fn keeps(name: &[u8], privileged: bool) -> bool {
    (name.starts_with(b"user.") && !name.starts_with(b"user.overlay."))
        || (privileged && name == b"security.capability")
}
