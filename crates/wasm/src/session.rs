//! One evaluation: what the guest was given, what it left behind, and what it has used up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use horchestra_flight::contract::{Host, Invocation, Limit, Limits, Output, Stats};

use crate::duration::go_duration;
use crate::stop::Stop;
use crate::wasi::{Clock, Random};

/// The state of one evaluation, shared by the WASI functions and the host functions.
pub(crate) struct Session {
    pub(crate) stdin: Vec<u8>,
    pub(crate) stdin_at: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    stderr_dropped: u64,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) open: [bool; 3],
    pub(crate) clock: Clock,
    pub(crate) random: Option<Random>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) memory: MemoryUse,
    /// Whether the guest's allocator is running on behalf of a host function.
    pub(crate) allocating: bool,
    limits: Limits,
    lookups: u32,
    started: Instant,
    deadline: Option<Instant>,
}

/// What the guest may have of memory, and whether it has asked for more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryUse {
    limit: u64,
    pub(crate) refused: bool,
}

impl MemoryUse {
    /// Whether the guest's memory may have this many bytes.
    pub(crate) fn allows(&mut self, desired: usize) -> bool {
        let allowed = desired as u64 <= self.limit;
        self.refused |= !allowed;
        allowed
    }
}

impl Session {
    pub(crate) fn new(invocation: &Invocation, host: Arc<dyn Host>) -> Self {
        let started = Instant::now();
        Self {
            stdin: invocation.stdin.clone(),
            stdin_at: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
            stderr_dropped: 0,
            args: invocation.args.clone(),
            env: invocation.env.clone(),
            open: [true; 3],
            clock: Clock::new(invocation.clock),
            random: None,
            host,
            memory: MemoryUse { limit: invocation.limits.memory, refused: false },
            allocating: false,
            limits: invocation.limits,
            lookups: 0,
            started,
            deadline: started.checked_add(invocation.limits.timeout),
        }
    }

    /// Time left; `None` is without end.
    pub(crate) fn remaining(&self) -> Result<Option<Duration>, Stop> {
        match self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => Err(Stop::Timeout),
            left => Ok(left),
        }
    }

    /// Appends to stdout.
    pub(crate) fn print(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.len() > self.limits.stdout.saturating_sub(self.stdout.len()) {
            return Err(Stop::Stdout);
        }
        self.stdout.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends to stderr as far as the limit allows.
    pub(crate) fn log(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.limits.stderr.saturating_sub(self.stderr.len()));
        let (kept, dropped) = bytes.split_at(kept);
        self.stderr.extend_from_slice(kept);
        self.stderr_dropped = self.stderr_dropped.saturating_add(dropped.len() as u64);
    }

    /// Counts a call of a host function.
    pub(crate) fn count_lookup(&mut self) -> Result<(), Stop> {
        if self.lookups >= self.limits.lookups {
            return Err(Stop::Lookups);
        }
        self.lookups += 1;
        Ok(())
    }

    /// The message for a limit that was reached. The text of the timeout is Yoke's, which its
    /// clients match on.
    pub(crate) fn limit_text(&self, limit: Limit) -> String {
        let limits = &self.limits;
        match limit {
            Limit::Timeout => {
                let timeout = go_duration(limits.timeout);
                format!(
                    "module closed with context deadline exceeded: execution timeout ({timeout}) exceeded; raise it \
                     with the field `timeout` of the Airway or Flight, or with --timeout"
                )
            }
            Limit::Memory => format!(
                "out of memory: the flight needs more than its limit of {}; raise it with the field `maxMemoryMib` of \
                 the Airway or Flight, or with --max-memory",
                bytes(limits.memory)
            ),
            Limit::Stdout => format!(
                "too much output: the flight printed more than its limit of {}; let it return fewer or smaller \
                 resources, or raise the limit with --max-stdout",
                bytes(limits.stdout as u64)
            ),
            Limit::Lookups => format!(
                "too many lookups: the flight asked the cluster more often than its limit of {} times; let it list \
                 instead of getting one by one, or raise the limit with --max-lookups",
                limits.lookups
            ),
            _ => "a limit was reached".into(),
        }
    }

    /// Everything on stderr, with a note for what was dropped.
    pub(crate) fn into_stderr(mut self) -> Vec<u8> {
        if self.stderr_dropped > 0 {
            let note = format!(
                "\n[the log ends here: {} more bytes were dropped, the limit is {}]\n",
                self.stderr_dropped,
                bytes(self.limits.stderr as u64)
            );
            self.stderr.extend_from_slice(note.as_bytes());
        }
        self.stderr
    }

    /// The result of a flight that came to its end.
    pub(crate) fn into_output(mut self, exit_code: i32, memory: u64) -> Output {
        // The flight gave up by itself after an allocation failed; its own words seldom say why.
        if exit_code != 0 && self.memory.refused {
            let note = format!("[{}]\n", self.limit_text(Limit::Memory));
            self.log(note.as_bytes());
        }
        let stats = Stats { time: self.started.elapsed(), memory, lookups: self.lookups };
        let stdout = std::mem::take(&mut self.stdout);
        Output { stdout, stderr: self.into_stderr(), exit_code, stats }
    }
}

/// A number of bytes as people write it: `10 MiB`, `1000 bytes`.
fn bytes(count: u64) -> String {
    match count {
        n if n > 0 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n > 0 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}
