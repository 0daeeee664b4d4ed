//! Finding a program inside a root.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;

use crate::unit::DEFAULT_PATH;
use crate::{Error, Result, Unit};

/// An open root: every path is looked up inside of it, whatever links it has.
pub(super) struct OpenRoot(OwnedFd);

impl OpenRoot {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty());
        root.map(Self).map_err(|e| Error::io(path.display().to_string(), e))
    }

    fn open(&self, path: &str) -> std::result::Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let path = path.trim_start_matches('/');
        let path = if path.is_empty() { "." } else { path };
        openat2(&self.0, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// The absolute path of the unit's program, as the unit sees it.
    pub(super) fn program(&self, unit: &Unit) -> Result<String> {
        let program = unit.argv.first().map(String::as_str).unwrap_or_default();
        let is_file = |path: &str| {
            let stat = self.open(path).and_then(fstat);
            stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile)
        };
        let missing = |why: String| Error::invalid(format!("{}: command {program:?}", unit.name), why);
        if program.starts_with('/') {
            return if is_file(program) {
                Ok(program.to_owned())
            } else {
                Err(missing("there is no such file in the image".into()))
            };
        }
        if program.contains('/') {
            let path = format!("{}/{program}", unit.working_dir.as_str().trim_end_matches('/'));
            return if is_file(&path) {
                Ok(path)
            } else {
                Err(missing(format!("there is no {path} in the image")))
            };
        }
        let path = unit.env.iter().find(|v| v.name() == "PATH").map_or(DEFAULT_PATH, |v| v.value());
        path.split(':')
            .filter(|dir| dir.starts_with('/'))
            .map(|dir| format!("{}/{program}", dir.trim_end_matches('/')))
            .find(|candidate| is_file(candidate))
            .ok_or_else(|| missing(format!("not found in PATH ({path})")))
    }

    /// Makes a directory with everything above it, where it is not there.
    pub(super) fn make(&self, path: &str) -> Result<()> {
        let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
        let failed = |e: Errno| Error::io(format!("making {path} in the image's root"), e);
        let mut so_far = String::new();
        for name in parts {
            let above = self.open(&so_far).map_err(failed)?;
            so_far = format!("{so_far}/{name}");
            match self.open(&so_far) {
                Ok(_) => {}
                Err(Errno::NOENT) => {
                    mkdirat(&above, name, Mode::from_raw_mode(0o755)).map_err(failed)?;
                }
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = OpenRoot::new(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        symlink("/real", dir.path().join("link")).unwrap();
        symlink("/../../../../etc", dir.path().join("out")).unwrap();
        root.make("/link/a/b").unwrap();
        assert!(dir.path().join("real/a/b").is_dir());
        // A link that leads nowhere inside is an error, never a directory outside.
        assert!(root.make("/out/x").is_err());
        assert!(!Path::new("/etc/x").exists());
        root.make("/").unwrap();
    }
}
