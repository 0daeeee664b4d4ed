//! Where modules come from.

mod allowed;
mod location;

use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use horchestra_wasm::{Cache, FlightEngine};
use sha2::{Digest, Sha256};

use self::allowed::Allowed;
use self::location::{Location, unreadable};
use crate::AtcError;

/// Finds, checks and compiles modules. Everything here blocks: call it where nothing waits.
#[derive(Clone)]
pub struct Modules {
    engine: Arc<dyn FlightEngine>,
    cache: Arc<Cache>,
    allowed: Allowed,
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
    /// references as in Go's `path.Match`; none allows all.
    ///
    /// # Errors
    /// A pattern that is not one.
    pub fn new(engine: Arc<dyn FlightEngine>, cache: Cache, allowed: &[String]) -> Result<Self, AtcError> {
        Ok(Self { engine, cache: Arc::new(cache), allowed: Allowed::parse(allowed)? })
    }

    /// Loads the module at `url`, which must have `checksum` if there is one.
    ///
    /// `url` is a path, `file://PATH`, or `oci:DIRECTORY[:TAG]`; a directory is an image layout or
    /// has exactly one `.wasm` file.
    pub fn load(&self, url: &str, checksum: Option<&str>) -> Result<Module, AtcError> {
        if !self.allowed.allows(url) {
            return Err(AtcError::NotAllowed { url: url.to_owned() });
        }
        let bytes = Location::parse(url)?.read().map_err(|reason| unreadable(url, &reason))?;
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

/// The checksum that a reference carries in itself: the tag or base name `sha256_X` or `NAME_sha256_X`.
fn inferred_checksum(url: &str) -> Option<String> {
    let base = url.rsplit(['/', ':']).next()?.split('.').next()?;
    let (before, sum) = base.rsplit_once("sha256_")?;
    (before.is_empty() || before.ends_with('_')).then(|| sum.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_in_references() {
        assert_eq!(inferred_checksum("oci://r/app:sha256_abc").as_deref(), Some("abc"));
        assert_eq!(inferred_checksum("/srv/app_sha256_abc.wasm").as_deref(), Some("abc"));
        assert_eq!(inferred_checksum("/srv/app.wasm"), None);
        assert_eq!(inferred_checksum("oci://r/app:v1"), None);
    }
}
