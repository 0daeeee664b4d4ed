//! An interpreted flight, and one call of it.

use std::fmt;
use std::sync::Arc;

use horchestra_flight::contract::{Evaluate, Fault, Host, Invocation, Output};
use wasmi::errors::{ErrorKind, InstantiationError};
use wasmi::{AsContextMut, Error, Extern, Func, Module, ResumableCall, Store, TrapCode, Val};

use super::context::Context;
use super::engine::Shared;
use crate::session::Session;
use crate::stop::{Ended, Stop, Trap, outcome};

/// How many instructions, about, run between two looks at the clock: about a millisecond.
const SLICE: u64 = 300_000;

/// A flight as wasmi holds it.
pub(super) struct Flight {
    shared: Arc<Shared>,
    module: Module,
    /// The export that is the module's start function.
    start: Option<String>,
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("engine", &self.shared).finish_non_exhaustive()
    }
}

impl Flight {
    pub(super) fn new(shared: Arc<Shared>, module: Module, start: Option<String>) -> Self {
        Self { shared, module, start }
    }

    fn call(&self, store: &mut Store<Context>, memory: &mut u64) -> Result<(), Error> {
        // No code of the guest runs in here, only its data is put in place.
        store.set_fuel(u64::MAX)?;
        let instance = self.shared.linker.instantiate_and_start(&mut *store, &self.module)?;
        store.set_fuel(SLICE)?;
        let mut result = Ok(());
        for name in self.start.iter().map(String::as_str).chain(["_start"]) {
            let Some(function) = instance.get_func(&*store, name) else { continue };
            result = result.and_then(|()| run(&mut *store, function, &[], &mut []));
        }
        if let Some(Extern::Memory(export)) = instance.get_export(&*store, "memory") {
            *memory = export.data_size(&*store) as u64;
        }
        result
    }
}

impl Evaluate for Flight {
    fn evaluate(&self, invocation: &Invocation, host: Arc<dyn Host>) -> Result<Output, Fault> {
        let session = Session::new(invocation, host);
        if let Err(stop) = session.remaining() {
            return outcome(session, Ended::Stopped(stop), 0);
        }
        // A store for this evaluation alone: nothing of it, trap or not, is seen by the next.
        let mut store = Store::new(&self.shared.engine, Context::new(session));
        store.limiter(|context| context);
        let mut memory = 0;
        let ended = match self.call(&mut store, &mut memory) {
            Ok(()) => Ended::Returned,
            Err(error) => ended(&error, store.data()),
        };
        outcome(store.into_data().session, ended, memory)
    }
}

/// Calls a function, slice by slice, within the time limit.
pub(super) fn run(
    mut store: impl AsContextMut<Data = Context>,
    function: Func,
    inputs: &[Val],
    outputs: &mut [Val],
) -> Result<(), Error> {
    let mut call = function.call_resumable(&mut store, inputs, outputs)?;
    loop {
        call = match call {
            ResumableCall::Finished => return Ok(()),
            ResumableCall::HostTrap(trap) => return Err(trap.into_host_error()),
            ResumableCall::OutOfFuel(paused) => {
                let mut context = store.as_context_mut();
                context.data().session.remaining().map_err(Error::host)?;
                context.set_fuel(SLICE.saturating_add(paused.required_fuel()))?;
                paused.resume(&mut store, outputs)?
            }
        };
    }
}

fn ended(error: &Error, context: &Context) -> Ended {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return Ended::Stopped(stop.clone());
    }
    match error.as_trap_code() {
        Some(trap) => match known(trap) {
            Some(trap) => Ended::Trapped(trap),
            None => Ended::Failed(format!("wasmi stopped the flight: {error}")),
        },
        None if matches!(
            error.kind(),
            ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. })
        ) =>
        {
            Ended::Trapped(Trap::TableOutOfBounds)
        }
        None if context.session.memory.refused => Ended::MemoryRefused,
        None => Ended::Failed(format!("wasmi cannot start the flight: {error}")),
    }
}

fn known(trap: TrapCode) -> Option<Trap> {
    Some(match trap {
        TrapCode::UnreachableCodeReached => Trap::Unreachable,
        TrapCode::MemoryOutOfBounds => Trap::MemoryOutOfBounds,
        TrapCode::TableOutOfBounds => Trap::TableOutOfBounds,
        TrapCode::IndirectCallToNull => Trap::IndirectCallToNull,
        TrapCode::BadSignature => Trap::IndirectCallType,
        TrapCode::IntegerDivisionByZero => Trap::DivisionByZero,
        TrapCode::IntegerOverflow => Trap::IntegerOverflow,
        TrapCode::BadConversionToInteger => Trap::BadConversion,
        TrapCode::StackOverflow => Trap::StackOverflow,
        _ => return None,
    })
}
