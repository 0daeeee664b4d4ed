//! A fresh directory that goes with the demonstration.

use std::fs;
use std::path::{Path, PathBuf};

/// Removed when it is dropped.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn fresh() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("horchestra-demo-{}", std::process::id()));
        fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {e}", self.0.display());
        }
    }
}
