//! Compiling ahead of time, and loading what was compiled.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use sha2::{Digest, Sha256};
use wasmtime::Module;

use super::Wasmtime;
use super::engine::failed;
use crate::cache::Verified;
use crate::engine::Aot;
use crate::{LoadError, module};

/// Feeds what is hashed to SHA-256: the standard hasher is not the same in the next release.
struct Stable(Sha256);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.clone().finalize().iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
    }
}

impl Aot for Wasmtime {
    fn fingerprint(&self) -> String {
        let mut hash = Stable(Sha256::new());
        self.shared().engine.precompile_compatibility_hash().hash(&mut hash);
        format!("wasmtime-{}", hex::encode(hash.0.finalize()))
    }

    fn compile(&self, module: &[u8]) -> Result<Vec<u8>, LoadError> {
        module::check(module, self.shared().options.max_module)?;
        self.shared().engine.precompile_module(module).map_err(|e| failed(&e))
    }

    fn load_compiled(&self, compiled: Verified<'_>) -> Result<Arc<dyn Evaluate>, LoadError> {
        #[allow(unsafe_code, reason = "native code cannot be checked, only who made it")]
        // SAFETY: `deserialize` needs bytes that `precompile_module` or `serialize` returned,
        // unchanged. A `Verified` is made only by the cache, from bytes that it got from `compile`
        // in this process, or that it read into memory and whose authentication code, made with a
        // key that only this user can read, it then checked over those same bytes in memory.
        let module = unsafe { Module::deserialize(&self.shared().engine, compiled.bytes()) };
        self.link(&module.map_err(|e| failed(&e))?)
    }
}
