//! What wasmtime's store carries, and a guest's memory as the host functions see it.

use horchestra_flight::contract::{MALLOC, MALLOC_ALIAS};
use wasmtime::{Caller, Extern, Memory, ResourceLimiter, Result};

use crate::hostcalls;
use crate::module::{MAX_TABLE_ELEMENTS, MAX_TABLES};
use crate::session::Session;
use crate::stop::Stop;
use crate::wasi::Guest;

/// The data of a store.
pub(super) struct Context {
    pub(super) session: Session,
    memory: Option<Memory>,
}

impl Context {
    pub(super) fn new(session: Session) -> Self {
        Self { session, memory: None }
    }
}

impl ResourceLimiter for Context {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.session.memory.allows(desired))
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(desired as u64 <= MAX_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        1
    }
}

/// The state of the evaluation and the guest's memory. A guest without one has an empty one.
pub(super) fn view<'a>(caller: &'a mut Caller<'_, Context>) -> (&'a mut Session, Guest<'a>) {
    if caller.data().memory.is_none() {
        let memory = caller.get_export("memory").and_then(Extern::into_memory);
        caller.data_mut().memory = memory;
    }
    match caller.data().memory {
        Some(memory) => {
            let (bytes, context) = memory.data_and_store_mut(caller);
            (&mut context.session, Guest(bytes))
        }
        None => (&mut caller.data_mut().session, Guest(&mut [])),
    }
}

impl hostcalls::Caller for Caller<'_, Context> {
    type Error = wasmtime::Error;

    fn stop(stop: Stop) -> wasmtime::Error {
        stop.into()
    }

    fn view(&mut self) -> (&mut Session, Guest<'_>) {
        view(self)
    }

    fn allocate(&mut self, size: u32) -> Result<Option<u64>> {
        for name in [MALLOC, MALLOC_ALIAS] {
            let Some(Extern::Func(function)) = self.get_export(name) else { continue };
            if let Ok(function) = function.typed::<u32, u64>(&*self) {
                return function.call(self, size).map(Some);
            }
        }
        Ok(None)
    }
}

/// Any error of a host function ends the evaluation.
pub(super) fn stop<T>(result: Result<T, Stop>) -> Result<T> {
    result.map_err(wasmtime::Error::from)
}
