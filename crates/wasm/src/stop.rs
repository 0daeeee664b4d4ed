//! Why the host stops a flight, and what the caller is told.

use std::fmt;

use horchestra_flight::contract::{Fault, Limit, Output};

use crate::session::Session;

/// Why a host function does not return to the guest. Travels through the engines as their error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `proc_exit`.
    Exit(i32),
    /// The wall clock.
    Timeout,
    /// More on stdout than allowed.
    Stdout,
    /// More questions than allowed.
    Lookups,
    /// The host has no answer yet.
    Pending,
    /// The guest broke the contract.
    Broken(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Timeout => write!(f, "time limit"),
            Self::Stdout => write!(f, "output limit"),
            Self::Lookups => write!(f, "lookup limit"),
            Self::Pending => write!(f, "pending"),
            Self::Broken(text) => write!(f, "{text}"),
        }
    }
}

impl std::error::Error for Stop {}

/// How a run of the guest ended, whichever engine ran it.
#[derive(Debug)]
pub(crate) enum Ended {
    /// `_start` returned.
    Returned,
    /// The host stopped it.
    Stopped(Stop),
    /// The guest trapped.
    Trapped(Trap),
    /// The memory it starts with is more than its limit.
    MemoryRefused,
    /// The engine could not start it.
    Failed(String),
}

/// The traps of WebAssembly 2.0, in one wording for all engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trap {
    Unreachable,
    MemoryOutOfBounds,
    TableOutOfBounds,
    IndirectCallToNull,
    IndirectCallType,
    DivisionByZero,
    IntegerOverflow,
    BadConversion,
    StackOverflow,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "unreachable code was reached (a panic or an abort)",
            Self::MemoryOutOfBounds => "out of bounds memory access",
            Self::TableOutOfBounds => "out of bounds table access",
            Self::IndirectCallToNull => "indirect call of a null table entry",
            Self::IndirectCallType => "indirect call of a function of another type",
            Self::DivisionByZero => "integer division by zero",
            Self::IntegerOverflow => "integer overflow",
            Self::BadConversion => "conversion of a float that no integer can hold",
            Self::StackOverflow => "stack overflow (recursion without an end?)",
        })
    }
}

/// What the caller gets: everything the guest left behind, or the reason there is nothing.
pub(crate) fn outcome(session: Session, ended: Ended, memory: u64) -> Result<Output, Fault> {
    let limit = |session: Session, limit| Fault::Limit {
        limit,
        text: session.limit_text(limit),
        stderr: session.into_stderr(),
    };
    match ended {
        Ended::Returned => Ok(session.into_output(0, memory)),
        Ended::Stopped(Stop::Exit(code)) => Ok(session.into_output(code, memory)),
        Ended::Stopped(Stop::Timeout) => Err(limit(session, Limit::Timeout)),
        Ended::Stopped(Stop::Stdout) => Err(limit(session, Limit::Stdout)),
        Ended::Stopped(Stop::Lookups) => Err(limit(session, Limit::Lookups)),
        Ended::Stopped(Stop::Pending) => Err(Fault::Pending),
        Ended::MemoryRefused => Err(limit(session, Limit::Memory)),
        // A guest whose allocation failed stops itself: the limit is the cause, the trap its effect.
        Ended::Trapped(trap) if session.memory.refused && trap != Trap::StackOverflow => {
            Err(limit(session, Limit::Memory))
        }
        Ended::Stopped(Stop::Broken(cause)) => Err(Fault::Trap { cause, stderr: session.into_stderr() }),
        Ended::Trapped(trap) => Err(Fault::Trap { cause: trap.to_string(), stderr: session.into_stderr() }),
        Ended::Failed(text) => Err(Fault::Link { text }),
    }
}
