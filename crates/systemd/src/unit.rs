use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use horchestra_oci::{EnvVar, ImagePath, ResolvedUser, StopSignal};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The name of a unit: safe as a file name, and unambiguous for what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitName(String);

/// Longest name; names become file names with suffixes.
const MAX_NAME: usize = 200;

impl UnitName {
    /// Checks a name: letters, digits, `.`, `_`, `-`, and not a dot at the start.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(text: &str) -> Result<Self> {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > MAX_NAME || text.starts_with('.') || !text.bytes().all(fine) {
            return Err(Error::invalid(
                format!("unit name {text:?}"),
                "1 to 200 letters, digits, '.', '_' and '-'",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The unit of an object. Names of the API hold no `_`, so that this is unambiguous.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the names are none of the API's.
    pub fn of(namespace: &str, name: &str) -> Result<Self> {
        if namespace.contains('_') || name.contains('_') {
            return Err(Error::invalid(format!("{namespace}/{name}"), "names do not hold '_'"));
        }
        let text = format!("{namespace}_{name}");
        if text.len() <= MAX_NAME {
            return Self::new(&text);
        }
        // Two long names that begin alike stay apart by a digest of all of it.
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        let start: String = text.chars().take(MAX_NAME - 17).collect();
        Self::new(&format!("{start}_{}", digest.get(..16).unwrap_or(&digest)))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What should run: everything about a process, in types, and nothing about who runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its name on this node.
    pub name: UnitName,
    /// What it was made from. A unit with another revision replaces this one.
    pub revision: String,
    /// Program and arguments. A program without a slash is looked for in `PATH` inside the root.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<EnvVar>,
    /// The file system it sees.
    pub root: Root,
    /// Where it starts; made if it is not there.
    pub working_dir: ImagePath,
    /// Who it runs as.
    pub user: ResolvedUser,
    /// What is mounted into the root.
    pub mounts: Vec<Mount>,
    /// When it is started again.
    pub restart: Restart,
    /// The signal that asks it to stop.
    pub stop_signal: StopSignal,
    /// How long it may take to stop before it is killed.
    pub grace: Duration,
    /// How long it may run, all restarts together.
    pub deadline: Option<Duration>,
    /// What it may use.
    pub limits: UnitLimits,
    /// What it may do.
    pub security: Security,
}

/// The file system that a unit sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The node's own. For tests and tools of the node; never for an image.
    Host,
    /// An unpacked image that several units share. Each run sees a fresh, writable layer on top of it.
    Shared(PathBuf),
    /// A directory that belongs to this unit alone.
    Private(PathBuf),
}

/// Something mounted into a unit's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where, inside.
    pub path: ImagePath,
    /// What.
    pub source: MountSource,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountSource {
    /// A directory or file of the node.
    Bind {
        /// Its path.
        from: PathBuf,
        /// Not writable inside.
        read_only: bool,
    },
    /// Memory, empty at each start.
    Tmpfs {
        /// Most bytes; half of the memory where there is none.
        size: Option<u64>,
    },
}

/// When a unit is started again after it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    Always,
    /// When it failed, so many times; without end where there is no number.
    OnFailure {
        /// How many times.
        retries: Option<u32>,
    },
}

impl Restart {
    /// Runs once.
    pub const NEVER: Self = Self::OnFailure { retries: Some(0) };
}

/// What a unit may use. Whether it is enforced depends on the supervisor; see
/// [`Capabilities`](crate::Capabilities).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitLimits {
    /// Processor time in thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Memory in bytes.
    pub memory: Option<u64>,
}

impl UnitLimits {
    /// Whether there is any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.cpu_millis.is_some() || self.memory.is_some()
    }
}

/// What a unit may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// May gain privileges by setuid programs.
    pub allow_privilege_escalation: bool,
    /// Capabilities taken away on top of those that nothing gets, in Kubernetes' words (`NET_RAW`, `ALL`).
    pub drop_capabilities: Vec<String>,
}

/// Where programs are looked for when the environment does not say it; Docker's default.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether a capability is among those taken away, which may be `ALL` and may begin with `CAP_`.
pub(crate) fn is_dropped(dropped: &[String], capability: &str) -> bool {
    dropped
        .iter()
        .map(|d| d.strip_prefix("CAP_").unwrap_or(d))
        .any(|d| d.eq_ignore_ascii_case("ALL") || d.eq_ignore_ascii_case(capability))
}

/// The bounds on logs of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Number of files.
    pub files: usize,
}

impl Default for LogLimits {
    /// Kubernetes' defaults: 10 MiB, and five files (`containerLogMaxSize`, `containerLogMaxFiles`).
    fn default() -> Self {
        Self { file_bytes: 10 << 20, files: 5 }
    }
}
