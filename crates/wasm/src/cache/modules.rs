//! The cache itself.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use horchestra_flight::contract::Evaluate;
use sha2::{Digest, Sha256};

use super::artifact::{self, Compiled};
use super::directory::Directory;
use super::loaded::Loaded;
use crate::engine::Aot;
use crate::{CacheError, FlightEngine, LoadError};

/// How many bytes of loaded modules are kept in memory, by default.
pub const DEFAULT_MEMORY_BUDGET: u64 = 512 << 20;
/// How many bytes of compiled modules are kept on disk, by default.
pub const DEFAULT_DISK_BUDGET: u64 = 2 << 30;

/// Loads each module once, and compiles it once for as long as its directory lives.
///
/// [`load`](Self::load) takes as long as compiling does: milliseconds to minutes. Call it on a
/// thread that may block, never where a reconcile waits; [`peek`](Self::peek) says at once whether
/// a module is there already.
///
/// What is in the directory is native code. It is loaded only if its authentication code is right,
/// made with a key that is kept beside it, readable for this user alone, and checked over the very
/// bytes that are then loaded. A file that fails is logged, compiled again and replaced.
#[derive(Debug)]
pub struct Cache {
    directory: Option<Directory>,
    loaded: Mutex<Loaded>,
    memory_budget: u64,
    disk_budget: u64,
}

impl Cache {
    /// A cache in a directory, which must belong to this user and be closed to all others; it is
    /// made if it does not exist.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, CacheError> {
        Ok(Self { directory: Some(Directory::open(directory.as_ref())?), ..Self::in_memory() })
    }

    /// A cache that compiles again in each process.
    pub fn in_memory() -> Self {
        Self {
            directory: None,
            loaded: Mutex::default(),
            memory_budget: DEFAULT_MEMORY_BUDGET,
            disk_budget: DEFAULT_DISK_BUDGET,
        }
    }

    /// The same cache with other budgets, in bytes. A module in use stays in use when it no longer
    /// fits: it is only loaded again when it is asked for next.
    #[must_use]
    pub fn with_budgets(self, memory: u64, disk: u64) -> Self {
        Self { memory_budget: memory, disk_budget: disk, ..self }
    }

    /// The loaded module of this digest (SHA-256 in hexadecimal), if it is loaded. Does not block.
    pub fn peek(&self, engine: &dyn FlightEngine, sha256: &str) -> Option<Arc<dyn Evaluate>> {
        let name = name(engine, sha256);
        let place = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).find(&name)?;
        // Somebody holds the lock only while the module is not loaded yet.
        place.try_lock().ok()?.clone()
    }

    /// The loaded module, compiled if need be. Blocks for as long as that takes. Callers with the
    /// same module wait for the first of them.
    pub fn load(&self, engine: &dyn FlightEngine, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError> {
        let name = name(engine, &hex::encode(Sha256::digest(module)));
        let place = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).place(&name);
        let mut slot = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = &*slot {
            return Ok(flight.clone());
        }
        let made = match (engine.aot(), &self.directory) {
            (Some(aot), Some(directory)) => self.load_from(directory, aot, &name, module),
            (Some(aot), None) => Compiled::new(aot, module)
                .and_then(|c| Ok((aot.load_compiled(c.verified())?, c.verified().bytes().len()))),
            (None, _) => engine.load(module).map(|flight| (flight, 0)),
        };
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        match made {
            Ok((flight, compiled)) => {
                *slot = Some(flight.clone());
                loaded.settle(&name, (module.len() + compiled) as u64, self.memory_budget);
                Ok(flight)
            }
            Err(error) => {
                loaded.forget(&name);
                Err(error)
            }
        }
    }

    fn load_from(
        &self,
        directory: &Directory,
        aot: &dyn Aot,
        name: &str,
        module: &[u8],
    ) -> Result<(Arc<dyn Evaluate>, usize), LoadError> {
        let refused = |problem: &str| {
            let path = directory.path_of(name);
            tracing::warn!(path = %path.display(), problem, "a compiled module is refused and compiled again");
            directory.remove(name);
        };
        match directory.read(name) {
            Ok(Some(file)) => match artifact::open(directory.key(), name, &file) {
                Ok(verified) => match aot.load_compiled(verified) {
                    Ok(flight) => {
                        directory.touch(name);
                        return Ok((flight, verified.bytes().len()));
                    }
                    Err(error) => refused(&error.to_string()),
                },
                Err(problem) => refused(problem),
            },
            Ok(None) => {}
            Err(error) => refused(&error.to_string()),
        }
        let compiled = Compiled::new(aot, module)?;
        let flight = aot.load_compiled(compiled.verified())?;
        let kept = directory
            .write(name, &compiled.seal(directory.key(), name))
            .and_then(|()| directory.shrink(self.disk_budget));
        if let Err(error) = kept {
            let path = directory.path_of(name);
            tracing::warn!(path = %path.display(), %error, "a compiled module is not kept: the next start compiles again");
        }
        Ok((flight, compiled.verified().bytes().len()))
    }
}

/// What a compiled module is called: everything it depends on.
fn name(engine: &dyn FlightEngine, sha256: &str) -> String {
    match engine.aot() {
        Some(aot) => format!("{sha256}-{}", aot.fingerprint()),
        None => format!("{sha256}-{}", engine.name()),
    }
}
