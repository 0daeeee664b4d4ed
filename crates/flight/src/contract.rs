//! The contract between a flight and its host, as data: what goes in, what comes out, what may be
//! asked for meanwhile. Hosts and guests are written against this module alone.
//!
//! The shape is Yoke's: a WASI preview 1 command that reads a resource on stdin and prints the
//! desired state on stdout, with two host functions in the module [`HOST_MODULE`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The name of the import module of both host functions.
pub const HOST_MODULE: &str = "host";
/// Reads one object: `(state_ptr i32, name i64, namespace i64, kind i64, api_version i64) -> i64`.
pub const K8S_LOOKUP: &str = "k8s_lookup";
/// Resolves a kind: `(state_ptr i32, group_or_api_version i64, kind i64) -> i64`.
pub const K8S_REST_MAPPING: &str = "k8s_rest_mapping";
/// The guest's allocator: `(size i32) -> i64`, a [`Buffer`].
pub const MALLOC: &str = "malloc";
/// What [`MALLOC`] is called in a module whose libc already owns that name (`wasm32-wasip1`).
pub const MALLOC_ALIAS: &str = "horchestra_malloc";

/// The environment variable that names the release.
pub const ENV_RELEASE: &str = "YOKE_RELEASE";
/// The environment variable that names the target namespace.
pub const ENV_NAMESPACE: &str = "YOKE_NAMESPACE";
/// The older name of [`ENV_NAMESPACE`]; hosts set both.
pub const ENV_NAMESPACE_LEGACY: &str = "NAMESPACE";
/// The environment variable with the host's version.
pub const ENV_VERSION: &str = "YOKE_VERSION";

/// The exit code of a flight that reports a status and wants nothing changed.
///
/// A host that does not know the code sees a failure that carries an identity, which Yoke's
/// contract handles the same way: the status is written and the release is left alone.
pub const EXIT_STATUS_ONLY: i32 = 80;

/// A piece of guest memory: `address << 32 | length`. Length 0 is empty, whatever the address.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffer(pub u64);

impl Buffer {
    /// Packs an address and a length.
    pub const fn new(address: u32, length: u32) -> Self {
        Self(((address as u64) << 32) | length as u64)
    }

    /// Where it starts.
    pub const fn address(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// How many bytes it has.
    pub const fn length(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}+{})", self.address(), self.length())
    }
}

/// How a host function ended. Hosts send no other number: a guest built with Yoke's SDK stops on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// The buffer holds the answer.
    Ok = 0,
    /// Cluster access was not granted to this flight.
    FeatureNotGranted = 1,
    /// Anything that has no number of its own; the buffer holds the text.
    Error = 2,
    /// The object does not exist.
    NotFound = 3,
    /// The host is not known to the API server.
    Unauthenticated = 4,
    /// The host or the flight may not read this object.
    Forbidden = 5,
}

impl State {
    /// The state with this number; an unknown one is [`State::Error`].
    pub const fn from_u32(n: u32) -> Self {
        match n {
            0 => Self::Ok,
            1 => Self::FeatureNotGranted,
            3 => Self::NotFound,
            4 => Self::Unauthenticated,
            5 => Self::Forbidden,
            _ => Self::Error,
        }
    }
}

/// What a host function was asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// One object, or the list of a kind (`kind` ends in `List`; then `name` is a selector in query form).
    Lookup {
        /// The object's name, or the selector of a list.
        name: String,
        /// The namespace; empty means the release's.
        namespace: String,
        /// The kind as written in manifests.
        kind: String,
        /// The group and version as written in manifests (`v1`, `apps/v1`).
        api_version: String,
    },
    /// How a kind is served.
    RestMapping {
        /// `group` or `group/version`; the core group is empty.
        group_or_api_version: String,
        /// The kind as written in manifests.
        kind: String,
    },
}

/// Why a host function has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The guest is told this state and text, and goes on.
    State(State, String),
    /// Nobody knows yet: what was asked for is not being watched. The evaluation is given up, and
    /// made again when the host has the answer. A flight is pure, so nothing is lost.
    Pending,
}

/// Answers a flight's questions during one evaluation. Must answer at once, from memory: the time
/// it takes counts against the flight's limit and cannot be interrupted.
///
/// It is shared with the engine, so whoever wants to know afterwards what was asked keeps a handle
/// and records behind a lock.
pub trait Host: Send + Sync {
    /// The JSON of the answer.
    fn ask(&self, question: Question) -> Result<Vec<u8>, Refusal>;
}

/// A host that grants no access to the cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCluster;

impl Host for NoCluster {
    fn ask(&self, _: Question) -> Result<Vec<u8>, Refusal> {
        Err(Refusal::State(State::FeatureNotGranted, "feature not granted".into()))
    }
}

/// One call of a flight.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// What the flight reads on stdin.
    pub stdin: Vec<u8>,
    /// `argv`, the release's name first.
    pub args: Vec<String>,
    /// The environment; nothing of the host's own leaks in.
    pub env: Vec<(String, String)>,
    /// What the flight's wall clock says at the start, as time since the Unix epoch. The clock is
    /// part of the input: it moves only by being read or slept on, the same way each time.
    pub clock: Duration,
    /// The bounds of this call.
    pub limits: Limits,
}

impl Invocation {
    /// A call on behalf of a release in a namespace, with the standard arguments and environment.
    pub fn new(release: &str, namespace: &str, stdin: Vec<u8>) -> Self {
        let env = [
            (ENV_RELEASE, release),
            (ENV_NAMESPACE, namespace),
            (ENV_NAMESPACE_LEGACY, namespace),
            (ENV_VERSION, concat!("v", env!("CARGO_PKG_VERSION"))),
        ];
        Self {
            stdin,
            args: vec![release.to_owned()],
            env: env.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(),
            clock: Duration::ZERO,
            limits: Limits::default(),
        }
    }
}

/// The bounds of one evaluation. Each has an error of its own that says how to raise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall clock, host calls included. [`Duration::MAX`] is no limit.
    pub timeout: Duration,
    /// Linear memory in bytes (Yoke counts MiB of 16 pages each).
    pub memory: u64,
    /// Bytes on stdout.
    pub stdout: usize,
    /// Bytes on stderr; more is dropped with a note, since a log must not fail a flight.
    pub stderr: usize,
    /// Calls of host functions.
    pub lookups: u32,
}

impl Default for Limits {
    /// 10 s (Yoke's default), 256 MiB, 16 MiB out, 256 KiB log, 10,000 lookups.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            memory: 256 << 20,
            stdout: 16 << 20,
            stderr: 256 << 10,
            lookups: 10_000,
        }
    }
}

/// Which bound of [`Limits`] ended an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::timeout`].
    Timeout,
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::stdout`].
    Stdout,
    /// [`Limits::lookups`].
    Lookups,
}

/// What a call left behind.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Everything printed on stdout.
    pub stdout: Vec<u8>,
    /// Everything printed on stderr, as far as the limit allows.
    pub stderr: Vec<u8>,
    /// 0 for success.
    pub exit_code: i32,
    /// What it cost.
    pub stats: Stats,
}

/// What one evaluation cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Wall clock of the evaluation.
    pub time: Duration,
    /// Linear memory at the end, in bytes; it never shrinks, so this is the peak.
    pub memory: u64,
    /// Calls of host functions.
    pub lookups: u32,
}

/// Why a call has no [`Output`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A host function answered [`Refusal::Pending`]; evaluate again later.
    Pending,
    /// A limit was reached. `text` says which, and how to raise it.
    Limit {
        /// Which one.
        limit: Limit,
        /// The whole message.
        text: String,
        /// What the flight had logged.
        stderr: Vec<u8>,
    },
    /// The flight stopped itself by a trap (a panic, an out-of-bounds access, `unreachable`).
    Trap {
        /// The cause as the engine gives it.
        cause: String,
        /// What the flight had logged.
        stderr: Vec<u8>,
    },
    /// The host could not run it at all: an import is missing, or an export has another type.
    Link {
        /// What is wrong and what to do.
        text: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = |f: &mut fmt::Formatter<'_>, stderr: &[u8]| match String::from_utf8_lossy(stderr).trim() {
            "" => Ok(()),
            log => write!(f, "; its log: {log}"),
        };
        match self {
            Self::Pending => write!(f, "waiting for the first read of a kind"),
            Self::Limit { text, stderr, .. } => write!(f, "{text}").and_then(|()| log(f, stderr)),
            Self::Trap { cause, stderr } => {
                write!(f, "the flight trapped: {cause}").and_then(|()| log(f, stderr))
            }
            Self::Link { text } => write!(f, "{text}"),
        }
    }
}

impl std::error::Error for Fault {}

/// A loaded flight: a compiled module, or a function that plays one. Each call starts from nothing.
pub trait Evaluate: Send + Sync + fmt::Debug {
    /// Runs the flight once. Blocks for as long as the flight runs, at most its time limit.
    fn evaluate(&self, invocation: &Invocation, host: Arc<dyn Host>) -> Result<Output, Fault>;
}
