//! The directory that a unit sees as its root: an image, and what the unit writes above it.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::unit::Root;
use crate::{Error, Result, Unit};

/// The directories of one unit.
#[derive(Debug)]
pub(super) struct UnitRoot {
    dir: PathBuf,
}

impl UnitRoot {
    /// Below this directory, which belongs to the unit.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn merged(&self) -> PathBuf {
        self.dir.join("merged")
    }

    /// Prepares the root of a unit that does not run; its path, or none for the node's own.
    pub(super) fn prepare(&self, unit: &Unit) -> Result<Option<PathBuf>> {
        match &unit.root {
            Root::Host => Ok(None),
            Root::Private(dir) => Ok(Some(dir.clone())),
            Root::Shared(image) => self.overlay(image).map(Some),
        }
    }

    fn overlay(&self, image: &Path) -> Result<PathBuf> {
        self.release()?;
        let (upper, work, merged) = (self.dir.join("upper"), self.dir.join("work"), self.merged());
        for dir in [&upper, &work, &merged] {
            std::fs::create_dir_all(dir).map_err(|e| Error::io(dir.display().to_string(), e))?;
        }
        let mut data = String::new();
        for (key, path) in [("lowerdir", image), ("upperdir", &upper), ("workdir", &work)] {
            let path = path.to_str().filter(|p| !p.contains([',', ':', '\\', '\0']));
            let path = path.ok_or_else(|| {
                Error::invalid(
                    "data directory",
                    "its path holds ',', ':' or '\\', which an overlay cannot have",
                )
            })?;
            data.push_str(&format!("{key}={path},"));
        }
        data.push_str("index=off");
        let data = CString::new(data).map_err(|e| Error::invalid("data directory", e.to_string()))?;
        mount("overlay", &merged, "overlay", MountFlags::NODEV, data.as_c_str())
            .map_err(|e| Error::io(format!("mounting the root {}", merged.display()), e))?;
        Ok(merged)
    }

    /// Takes the root away, with everything that the unit wrote into it.
    pub(super) fn release(&self) -> Result<()> {
        let merged = self.merged();
        if merged.is_dir() {
            // Not mounted is as good.
            let _ = unmount(&merged, UnmountFlags::DETACH);
        }
        if self.dir.exists() {
            horchestra_oci::remove_tree(&self.dir)?;
        }
        Ok(())
    }
}
