//! The engine itself.

use std::fmt;
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use wasmi::{CompilationMode, Config, Engine, Linker, Module};

use super::context::Context;
use super::flight::Flight;
use super::{linker, start};
use crate::{EngineOptions, FlightEngine, LoadError, module};

/// What wasmi is called in messages.
const NAME: &str = "wasmi";
/// The deepest recursion, in calls.
const RECURSION: usize = 16 << 10;
/// The stack of values of a flight, in bytes. It is on the heap and grows as needed.
const STACK: usize = 16 << 20;
/// How many stacks are kept between evaluations.
const KEPT_STACKS: usize = 8;

/// Interprets flights: loads in milliseconds, runs a few times slower, and needs no executable
/// memory. For tests, for hardened systems, and as the measure of the other engine.
#[derive(Debug, Clone)]
pub struct Wasmi(Arc<Shared>);

/// What all flights of an engine share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) linker: Linker<Context>,
    options: EngineOptions,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasmi").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Wasmi {
    /// An engine with default settings.
    pub fn new() -> Result<Self, LoadError> {
        Self::with(EngineOptions::default())
    }

    /// An engine with these settings. `concurrency` has no meaning here: an evaluation reserves
    /// nothing in advance.
    pub fn with(options: EngineOptions) -> Result<Self, LoadError> {
        let mut config = Config::default();
        config
            .set_max_recursion_depth(RECURSION)
            .set_max_stack_height(STACK)
            .set_max_cached_stacks(KEPT_STACKS)
            .consume_fuel(true)
            // Translating a function at its first call would cost fuel there, and running out of
            // it is no pause then but the end.
            .compilation_mode(CompilationMode::Eager)
            .ignore_custom_sections(true)
            // WebAssembly 2.0 and nothing later. The check before compiling says so too.
            .wasm_simd(true)
            .wasm_relaxed_simd(false)
            .wasm_tail_call(false)
            .wasm_multi_memory(false)
            .wasm_extended_const(false);
        let engine = Engine::new(&config);
        let linker = linker::linker(&engine).map_err(|e| failed(&e))?;
        Ok(Self(Arc::new(Shared { engine, linker, options })))
    }
}

impl FlightEngine for Wasmi {
    fn name(&self) -> &str {
        NAME
    }

    fn load(&self, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError> {
        let facts = module::check(module, self.0.options.max_module)?;
        let (rewritten, start) = match start::expose(module, &facts) {
            Some((module, start)) => (Some(module), Some(start)),
            None => (None, None),
        };
        let bytes = rewritten.as_deref().unwrap_or(module);
        let module = Module::new(&self.0.engine, bytes).map_err(|e| failed(&e))?;
        Ok(Arc::new(Flight::new(self.0.clone(), module, start)))
    }
}

fn failed(error: &wasmi::Error) -> LoadError {
    LoadError::Engine { engine: NAME.into(), cause: error.to_string() }
}
