//! Where a module is.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use horchestra_oci::{Layout, Selector};
use horchestra_wasm::MAX_MODULE_BYTES;

use crate::AtcError;

/// The place that the URL of a module names.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// A file, or a directory with one module or an image layout in it.
    Path(PathBuf),
    /// An image layout.
    Layout { directory: PathBuf, select: Selector },
}

impl Location {
    /// Reads a URL: a path, `file://PATH`, or `oci:DIRECTORY[:TAG]`.
    pub(super) fn parse(url: &str) -> Result<Self, AtcError> {
        for (prefix, scheme) in [("https://", "https"), ("http://", "http"), ("oci://", "a registry")] {
            if url.starts_with(prefix) {
                return Err(AtcError::Unsupported { url: url.to_owned(), scheme: scheme.to_owned() });
            }
        }
        let Some(layout) = url.strip_prefix("oci:") else {
            let path = url.strip_prefix("file://").unwrap_or(url);
            if path.is_empty() {
                return Err(unreadable(url, "names no file"));
            }
            return Ok(Self::Path(path.into()));
        };
        let (directory, tag) = match layout.rsplit_once(':') {
            Some((directory, tag)) if !tag.contains('/') => (directory, tag),
            _ => (layout, ""),
        };
        let select = Selector::parse(tag).map_err(|e| unreadable(url, &e.to_string()))?;
        Ok(Self::Layout { directory: directory.into(), select })
    }

    /// The bytes of the module. Blocks.
    pub(super) fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Layout { directory, select } => from_layout(directory, select),
            Self::Path(path) if !path.is_dir() => read(path),
            Self::Path(path) if path.join("oci-layout").is_file() => {
                from_layout(path, &Selector::parse("").map_err(|e| e.to_string())?)
            }
            Self::Path(path) => read(&only_module(path)?),
        }
    }
}

/// The error of a module that cannot be had from where it is said to be.
pub(super) fn unreadable(url: &str, reason: &str) -> AtcError {
    AtcError::Unreadable { url: url.to_owned(), reason: reason.to_owned() }
}

fn only_module(directory: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(directory).map_err(|e| e.to_string())?;
    let is_module = |path: &PathBuf| path.extension().is_some_and(|e| e == "wasm");
    let mut modules = entries.filter_map(|e| Some(e.ok()?.path())).filter(is_module);
    match (modules.next(), modules.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("the directory has no .wasm file".into()),
        _ => Err("the directory has several .wasm files; name one of them".into()),
    }
}

fn from_layout(directory: &Path, select: &Selector) -> Result<Vec<u8>, String> {
    Layout::open(directory).and_then(|layout| layout.flight_module(select)).map_err(|e| e.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|e| e.to_string())?;
    // A pipe or a device could be waited for without end.
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| e.to_string())?;
    file.take(MAX_MODULE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_MODULE_BYTES {
        return Err(format!("has more than {MAX_MODULE_BYTES} bytes, the most that a module may have"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use horchestra_oci::LayoutBuilder;

    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const OTHER: &[u8] = b"\0asm\x01\0\0\0\0\x01\0";

    fn load(url: impl AsRef<str>) -> Result<Vec<u8>, String> {
        Location::parse(url.as_ref()).map_err(|e| e.to_string())?.read()
    }

    #[test]
    fn files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(path("one.wasm"), MODULE).unwrap();
        std::fs::write(path("notes.txt"), "no module").unwrap();
        assert_eq!(load(path("one.wasm")).unwrap(), MODULE);
        assert_eq!(load(format!("file://{}", path("one.wasm"))).unwrap(), MODULE);
        assert_eq!(load(path("")).unwrap(), MODULE, "the only module of a directory");
        std::fs::write(path("two.wasm"), OTHER).unwrap();
        assert!(load(path("")).unwrap_err().contains("several .wasm files"));
        std::fs::create_dir(path("empty")).unwrap();
        assert!(load(path("empty")).unwrap_err().contains("no .wasm file"));
        assert!(load(path("missing.wasm")).unwrap_err().contains("No such file"));
        assert!(load("/dev/null").unwrap_err().contains("not a file"));
        assert!(load("file://").unwrap_err().contains("names no file"));
    }

    #[test]
    fn layouts_by_directory_and_by_tag() {
        let dir = tempfile::tempdir().unwrap();
        let layout = LayoutBuilder::create(dir.path().join("flights")).unwrap();
        layout.flight("v1", MODULE).unwrap();
        let path = dir.path().join("flights").display().to_string();
        assert_eq!(load(&path).unwrap(), MODULE, "the only flight of a layout");
        layout.flight("v2", OTHER).unwrap();
        assert_eq!(load(format!("oci:{path}:v1")).unwrap(), MODULE);
        assert_eq!(load(format!("oci:{path}:v2")).unwrap(), OTHER);
        assert!(load(format!("oci:{path}:v3")).unwrap_err().contains("v3"));
        assert!(load(&path).is_err(), "which of the two is not said");
        assert!(load("oci:/nowhere:v1").is_err());
    }

    #[test]
    fn what_is_not_supported_says_what_is() {
        for url in ["https://host/f.wasm", "http://host/f.wasm", "oci://host/f:v1"] {
            let error = load(url).unwrap_err();
            assert!(error.contains(url) && error.contains("use a file"), "{error}");
        }
    }
}
