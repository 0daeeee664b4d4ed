//! Where modules come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use horchestra_oci::{Layout, Selector};
use horchestra_wasm::{Cache, FlightEngine, MAX_MODULE_BYTES};
use sha2::{Digest, Sha256};

use crate::AtcError;

/// Finds, checks and compiles modules. Everything here blocks: call it where nothing waits.
#[derive(Clone)]
pub struct Modules {
    engine: Arc<dyn FlightEngine>,
    cache: Arc<Cache>,
    allowed: Arc<[String]>,
}

/// A module that was found and checked.
#[derive(Debug, Clone)]
pub struct Module {
    /// Ready to be called.
    pub flight: Arc<dyn Evaluate>,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Modules {
    /// Modules of an engine, compiled ones kept in a cache. `allowed` are patterns for module
    /// references in which `*` stands for anything but `/`; none allows all.
    pub fn new(engine: Arc<dyn FlightEngine>, cache: Cache, allowed: Vec<String>) -> Self {
        Self { engine, cache: Arc::new(cache), allowed: allowed.into() }
    }

    /// Loads the module at `url`, which must have `checksum` if there is one.
    ///
    /// `url` is a path, `file://PATH`, or `oci:DIRECTORY[:TAG]`; a directory is an image layout or
    /// has exactly one `.wasm` file.
    pub fn load(&self, url: &str, checksum: Option<&str>) -> Result<Module, AtcError> {
        if !self.allowed.is_empty() && !self.allowed.iter().any(|pattern| matches(pattern, url)) {
            return Err(AtcError::NotAllowed { url: url.to_owned() });
        }
        let bytes = fetch(url)?;
        let sha256 = hex::encode(Sha256::digest(&bytes));
        if let Some(wanted) = checksum.map(str::to_owned).or_else(|| inferred_checksum(url))
            && wanted != sha256
        {
            return Err(AtcError::Checksum { wanted, got: sha256 });
        }
        let refused =
            |e: horchestra_wasm::LoadError| AtcError::Refused { url: url.to_owned(), reason: e.to_string() };
        let flight = self.cache.load(&*self.engine, &bytes).map_err(refused)?;
        Ok(Module { flight, sha256 })
    }
}

impl std::fmt::Debug for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modules")
            .field("engine", &self.engine)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

fn fetch(url: &str) -> Result<Vec<u8>, AtcError> {
    let unreadable = |reason: String| AtcError::Unreadable { url: url.to_owned(), reason };
    if let Some(scheme) = ["https", "http"].into_iter().find(|s| url.starts_with(&format!("{s}://"))) {
        return Err(AtcError::Unsupported { url: url.to_owned(), scheme: scheme.to_owned() });
    }
    if url.starts_with("oci://") {
        return Err(AtcError::Unsupported { url: url.to_owned(), scheme: "a registry".to_owned() });
    }
    if let Some(layout) = url.strip_prefix("oci:") {
        let (dir, tag) = match layout.rsplit_once(':') {
            Some((dir, tag)) if !tag.contains('/') => (dir, tag),
            _ => (layout, ""),
        };
        return from_layout(Path::new(dir), tag).map_err(unreadable);
    }
    let path = PathBuf::from(url.strip_prefix("file://").unwrap_or(url));
    if !path.is_dir() {
        return read(&path).map_err(unreadable);
    }
    if path.join("oci-layout").is_file() {
        return from_layout(&path, "").map_err(unreadable);
    }
    let entries = std::fs::read_dir(&path).map_err(|e| unreadable(e.to_string()))?;
    let modules: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "wasm"))
        .take(2)
        .collect();
    match modules.as_slice() {
        [one] => read(one).map_err(unreadable),
        [] => Err(unreadable("the directory has no .wasm file".into())),
        _ => Err(unreadable("the directory has several .wasm files; name one of them".into())),
    }
}

fn from_layout(dir: &Path, tag: &str) -> Result<Vec<u8>, String> {
    let select = Selector::parse(tag).map_err(|e| e.to_string())?;
    Layout::open(dir).and_then(|layout| layout.flight_module(&select)).map_err(|e| e.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > MAX_MODULE_BYTES {
        return Err(format!("has {size} bytes; the limit is {MAX_MODULE_BYTES}"));
    }
    std::fs::read(path).map_err(|e| e.to_string())
}

/// The checksum that a reference carries in itself: the tag or base name `sha256_X` or `NAME_sha256_X`.
fn inferred_checksum(url: &str) -> Option<String> {
    let base = url.rsplit(['/', ':']).next()?.split('.').next()?;
    let (before, sum) = base.rsplit_once("sha256_")?;
    (before.is_empty() || before.ends_with('_')).then(|| sum.to_owned())
}

/// Whether a pattern covers a reference: `*` stands for anything but `/`, `?` for one such character.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match (pattern.get(p), text.get(t)) {
            (Some('*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some('?'), Some(c)) if *c != '/' => (p, t) = (p + 1, t + 1),
            (Some(a), Some(b)) if a == b => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) if text.get(from).is_some_and(|c| *c != '/') => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_do_not_cross_slashes() {
        assert!(matches("oci://registry/team/*", "oci://registry/team/app:v1"));
        assert!(!matches("oci://registry/team/*", "oci://registry/team/sub/app:v1"));
        assert!(matches("*.wasm", "flight.wasm"));
        assert!(!matches("*.wasm", "dir/flight.wasm"));
        assert!(matches("/srv/?/x", "/srv/a/x"));
    }

    #[test]
    fn checksums_in_references() {
        assert_eq!(inferred_checksum("oci://r/app:sha256_abc").as_deref(), Some("abc"));
        assert_eq!(inferred_checksum("/srv/app_sha256_abc.wasm").as_deref(), Some("abc"));
        assert_eq!(inferred_checksum("/srv/app.wasm"), None);
        assert_eq!(inferred_checksum("oci://r/app:v1"), None);
    }
}
