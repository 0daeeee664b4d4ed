//! What an engine is.

use std::fmt;
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;

use crate::cache::Verified;
use crate::{LoadError, MAX_MODULE_BYTES};

/// Turns the bytes of a module into a flight that can be called.
///
/// All engines behave the same to the byte: the same output, exit code and fault for the same
/// module and invocation. They differ in how long loading and calling take.
pub trait FlightEngine: Send + Sync + fmt::Debug {
    /// Its name, for messages and metrics.
    fn name(&self) -> &str;

    /// Checks and compiles a module. Takes from milliseconds to minutes and blocks; call it where
    /// nothing waits, and through a [`Cache`](crate::Cache).
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError>;

    /// The engine's ahead-of-time side, if compiling is what takes its time.
    fn aot(&self) -> Option<&dyn Aot> {
        None
    }
}

/// The side of an engine that compiles ahead of time. Used by [`Cache`](crate::Cache).
pub trait Aot: Send + Sync {
    /// Identifies everything that a compiled module depends on besides the module: the engine's
    /// version, its settings and the processor.
    fn fingerprint(&self) -> String;

    /// Checks and compiles a module to native code.
    fn compile(&self, module: &[u8]) -> Result<Vec<u8>, LoadError>;

    /// Loads what [`compile`](Self::compile) made. The type of the argument says that it is
    /// unchanged since: anything else would be native code of somebody else.
    fn load_compiled(&self, compiled: Verified<'_>) -> Result<Arc<dyn Evaluate>, LoadError>;
}

/// The settings of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// The largest module in bytes.
    pub max_module: u64,
    /// How many evaluations run at once; more wait for their turn, within their time limit.
    pub concurrency: u32,
}

impl Default for EngineOptions {
    /// [`MAX_MODULE_BYTES`], and 64 evaluations at once.
    fn default() -> Self {
        Self { max_module: MAX_MODULE_BYTES, concurrency: 64 }
    }
}
