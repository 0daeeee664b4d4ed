//! A clock that is part of the input.

use std::time::Duration;

use super::{Errno, Guest};
use crate::session::Session;

/// How far one look at the clock moves it. A flight that waits by looking comes to an end.
const TICK: Duration = Duration::from_micros(1);

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
const PROCESS_CPU: u32 = 2;
const THREAD_CPU: u32 = 3;

/// The guest's clock: it moves only by being looked at or slept on, the same way each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Duration,
    elapsed: Duration,
}

impl Clock {
    /// A clock that starts at a time since the Unix epoch.
    pub(crate) fn new(origin: Duration) -> Self {
        Self { origin, elapsed: Duration::ZERO }
    }

    /// Nanoseconds on a clock by its WASI number. Moves the clock, so it is never 0: Go's runtime
    /// stops on a monotonic clock that is.
    pub(crate) fn read(&mut self, id: u32) -> Result<u64, Errno> {
        self.advance(TICK);
        self.now(id)
    }

    /// As [`read`](Self::read), without moving it.
    pub(crate) fn now(&self, id: u32) -> Result<u64, Errno> {
        let time = match id {
            REALTIME => self.origin.saturating_add(self.elapsed),
            MONOTONIC | PROCESS_CPU | THREAD_CPU => self.elapsed,
            _ => return Err(Errno::INVAL),
        };
        Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.elapsed = self.elapsed.saturating_add(by);
    }
}

pub(crate) fn clock_res_get(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (id, out): (u32, u32),
) -> super::Outcome {
    Ok(match session.clock.now(id).and_then(|_| guest.write_u64(out, TICK.as_nanos() as u64)) {
        Ok(()) => Errno::SUCCESS,
        Err(errno) => errno,
    })
}

pub(crate) fn clock_time_get(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (id, _precision, out): (u32, u64, u32),
) -> super::Outcome {
    Ok(match session.clock.read(id).and_then(|now| guest.write_u64(out, now)) {
        Ok(()) => Errno::SUCCESS,
        Err(errno) => errno,
    })
}
