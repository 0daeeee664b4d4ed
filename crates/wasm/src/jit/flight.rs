//! A compiled flight, and one call of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use horchestra_flight::contract::{Evaluate, Fault, Host, Invocation, Output};
use wasmtime::{Extern, InstancePre, Store, UpdateDeadline};

use super::context::Context;
use super::engine::Shared;
use super::ticker::TICK;
use crate::session::Session;
use crate::stop::{Ended, Stop, Trap, outcome};

/// The longest time until a running flight looks at the real clock: ticks may come late, and the
/// clock does not.
const LOOK: Duration = Duration::from_millis(100);

/// A compiled flight.
pub(super) struct Flight {
    shared: Arc<Shared>,
    pre: InstancePre<Context>,
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("engine", &self.shared).finish_non_exhaustive()
    }
}

impl Flight {
    pub(super) fn new(shared: Arc<Shared>, pre: InstancePre<Context>) -> Self {
        Self { shared, pre }
    }
}

impl Evaluate for Flight {
    fn evaluate(&self, invocation: &Invocation, host: Arc<dyn Host>) -> Result<Output, Fault> {
        let session = Session::new(invocation, host);
        let left = match session.remaining() {
            Ok(left) => left,
            Err(stop) => return outcome(session, Ended::Stopped(stop), 0),
        };
        let Some(_permit) = self.shared.gate.enter(left) else {
            return outcome(session, Ended::Stopped(Stop::Timeout), 0);
        };
        let _running = match self.shared.ticker.run() {
            Ok(running) => running,
            Err(error) => {
                let text = format!(
                    "cannot start the thread that limits a flight's time: {error}; allow more threads"
                );
                return outcome(session, Ended::Failed(text), 0);
            }
        };
        // A store for this evaluation alone: nothing of it, trap or not, is seen by the next.
        let mut store = Store::new(&self.shared.engine, Context::new(session));
        store.limiter(|context| context);
        store.epoch_deadline_callback(|store| match store.data().session.remaining() {
            Ok(left) => Ok(UpdateDeadline::Continue(ticks(left))),
            Err(stop) => Err(stop.into()),
        });
        store.set_epoch_deadline(ticks(left));
        let mut memory = 0;
        let ended = match self.call(&mut store, &mut memory) {
            Ok(()) => Ended::Returned,
            Err(error) => ended(&error, store.data()),
        };
        outcome(store.into_data().session, ended, memory)
    }
}

impl Flight {
    fn call(&self, store: &mut Store<Context>, memory: &mut u64) -> wasmtime::Result<()> {
        let instance = self.pre.instantiate(&mut *store)?;
        let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
        let result = start.call(&mut *store, ());
        if let Some(Extern::Memory(export)) = instance.get_export(&mut *store, "memory") {
            *memory = export.data_size(&*store) as u64;
        }
        result
    }
}

fn ticks(left: Option<Duration>) -> u64 {
    let wait = left.map_or(LOOK, |left| left.min(LOOK));
    u64::try_from(wait.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(1).max(1)
}

fn ended(error: &wasmtime::Error, context: &Context) -> Ended {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return Ended::Stopped(stop.clone());
    }
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(trap) => match known(*trap) {
            Some(trap) => Ended::Trapped(trap),
            None => Ended::Failed(format!("wasmtime stopped the flight: {trap}")),
        },
        None if context.session.memory.refused => Ended::MemoryRefused,
        None => Ended::Failed(format!("wasmtime cannot start the flight: {error:#}")),
    }
}

fn known(trap: wasmtime::Trap) -> Option<Trap> {
    use wasmtime::Trap as T;
    Some(match trap {
        T::UnreachableCodeReached => Trap::Unreachable,
        T::MemoryOutOfBounds => Trap::MemoryOutOfBounds,
        T::TableOutOfBounds => Trap::TableOutOfBounds,
        T::IndirectCallToNull => Trap::IndirectCallToNull,
        T::BadSignature => Trap::IndirectCallType,
        T::IntegerDivisionByZero => Trap::DivisionByZero,
        T::IntegerOverflow => Trap::IntegerOverflow,
        T::BadConversionToInteger => Trap::BadConversion,
        T::StackOverflow => Trap::StackOverflow,
        _ => return None,
    })
}
