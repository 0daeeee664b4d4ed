//! The engine itself.

use std::fmt;
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use wasmtime::{Engine, Linker, Module};

use super::context::Context;
use super::flight::Flight;
use super::gate::Gate;
use super::ticker::Ticker;
use super::{config, linker};
use crate::engine::Aot;
use crate::{EngineOptions, FlightEngine, LoadError, module};

/// What wasmtime is called in messages.
const NAME: &str = "wasmtime";

/// Runs flights as native code. The default: slow to load without a [`Cache`](crate::Cache), fast
/// to call.
///
/// Needs memory pages that are writable first and executable later; where the system forbids them
/// (systemd's `MemoryDenyWriteExecute=yes`), use [`Wasmi`](crate::Wasmi).
#[derive(Debug, Clone)]
pub struct Wasmtime(Arc<Shared>);

/// What all flights of an engine share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) linker: Linker<Context>,
    pub(super) ticker: Ticker,
    pub(super) gate: Gate,
    pub(super) options: EngineOptions,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasmtime").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Wasmtime {
    /// An engine with default settings.
    pub fn new() -> Result<Self, LoadError> {
        Self::with(EngineOptions::default())
    }

    /// An engine with these settings.
    pub fn with(options: EngineOptions) -> Result<Self, LoadError> {
        let engine = Engine::new(&config::pooled(options)).or_else(|error| {
            tracing::info!(%error, "no pool of memories: address space is limited (ulimit -v?); flights start slower");
            Engine::new(&config::on_demand())
        });
        Self::on(engine.map_err(|e| failed(&e))?, options)
    }

    /// An engine that reserves no address space in advance. Slower; what [`with`](Self::with)
    /// falls back to by itself.
    pub fn on_demand(options: EngineOptions) -> Result<Self, LoadError> {
        Self::on(Engine::new(&config::on_demand()).map_err(|e| failed(&e))?, options)
    }

    fn on(engine: Engine, options: EngineOptions) -> Result<Self, LoadError> {
        let linker = linker::linker(&engine).map_err(|e| failed(&e))?;
        let ticker = Ticker::new(&engine);
        let gate = Gate::new(options.concurrency.max(1));
        Ok(Self(Arc::new(Shared { engine, linker, ticker, gate, options })))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Makes a compiled module callable.
    pub(super) fn link(&self, module: &Module) -> Result<Arc<dyn Evaluate>, LoadError> {
        let pre = self.0.linker.instantiate_pre(module).map_err(|e| failed(&e))?;
        Ok(Arc::new(Flight::new(self.0.clone(), pre)))
    }
}

impl FlightEngine for Wasmtime {
    fn name(&self) -> &str {
        NAME
    }

    fn load(&self, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError> {
        module::check(module, self.0.options.max_module)?;
        self.link(&Module::new(&self.0.engine, module).map_err(|e| failed(&e))?)
    }

    fn aot(&self) -> Option<&dyn Aot> {
        Some(self)
    }
}

pub(super) fn failed(error: &wasmtime::Error) -> LoadError {
    LoadError::Engine { engine: NAME.into(), cause: format!("{error:#}") }
}
