//! Files of Secrets and ConfigMaps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::{Error, Result};

/// Writes files that a workload may read and nobody else of this machine can reach: the directory
/// above is closed, and only this one is mounted.
///
/// The directory stays the same and each file changes at once: a workload that runs has it mounted.
pub(super) fn write_files(dir: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    let io = |e: std::io::Error| Error::io(dir.display().to_string(), e);
    let mut contents = BTreeMap::new();
    for (name, content) in files {
        // A name that begins with a dot could be one of our own on the way.
        if name.is_empty() || name.contains('/') || name == "." || name == ".." || name.ends_with(PART) {
            return Err(Error::invalid(format!("key {name:?}"), "is not a file name"));
        }
        let content = BASE64_STANDARD.decode(content).map_err(|e| Error::invalid(name, e.to_string()))?;
        contents.insert(name.as_str(), content);
    }
    if let Some(parent) = dir.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io)?;
    }
    if !dir.is_dir() {
        std::fs::DirBuilder::new().mode(0o755).create(dir).map_err(io)?;
    }
    for (name, content) in &contents {
        let path = dir.join(name);
        if std::fs::read(&path).is_ok_and(|before| before == *content) {
            continue;
        }
        let part = dir.join(format!(".{name}{PART}"));
        let _ = std::fs::remove_file(&part);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o444).open(&part).map_err(io)?;
        file.write_all(content).map_err(io)?;
        std::fs::rename(&part, &path).map_err(io)?;
    }
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        if !contents.keys().any(|name| OsStr::new(name) == entry.file_name()) {
            std::fs::remove_file(entry.path()).map_err(io)?;
        }
    }
    Ok(())
}

/// What the name of a file ends with while it is being written.
const PART: &str = ".horchestra-part";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(name, text)| ((*name).to_owned(), BASE64_STANDARD.encode(text))).collect()
    }

    #[test]
    fn what_is_mounted_stays_and_what_changed_changes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("unit/0");
        write_files(&dir, &files(&[("a", "1"), ("b", "2")])).unwrap();
        let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
        let (before, a) = (inode(&dir), inode(&dir.join("a")));
        write_files(&dir, &files(&[("a", "1"), ("c", "3")])).unwrap();
        assert_eq!((inode(&dir), inode(&dir.join("a"))), (before, a), "what is the same is not touched");
        let mut names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(std::fs::read_to_string(dir.join("c")).unwrap(), "3");
        assert_eq!(std::fs::metadata(dir.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn names_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", ".", "..", "a/b", "../x"] {
            assert!(write_files(&dir.path().join("x"), &files(&[(bad, "1")])).is_err(), "{bad:?}");
        }
        assert!(!dir.path().join("x").exists(), "nothing is written before all is checked");
    }
}
