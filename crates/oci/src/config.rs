use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::limits::{MAX_ARGS, MAX_CONFIG_MAP, MAX_ENV, MAX_EXEC_BYTES, MAX_LAYERS, MAX_PATH_BYTES};
use crate::{Digest, Error, Platform, Result};

/// What an image says about how it wants to run (OCI's config.md), in types that cannot hold a value which
/// would mean something else where it ends up: in an argument list, an environment, a path or a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageConfig {
    /// What it runs on.
    pub platform: Platform,
    /// Environment, in the image's order, each name once (the last one wins, as in Docker).
    pub env: Vec<EnvVar>,
    /// First part of the command line.
    pub entrypoint: Vec<String>,
    /// Second part of the command line, replaced by arguments.
    pub cmd: Vec<String>,
    /// Who it runs as; root where there is none.
    pub user: Option<UserSpec>,
    /// Where it starts.
    pub working_dir: ImagePath,
    /// The signal that asks it to stop.
    pub stop_signal: Option<StopSignal>,
    /// Labels. They are data to show; nothing is decided by them.
    pub labels: BTreeMap<String, String>,
    /// Directories that the image wants to be volumes.
    pub volumes: Vec<ImagePath>,
    /// Digests of the decompressed layers, lowest first.
    pub diff_ids: Vec<Digest>,
}

/// One environment variable. The name is not empty and has no `=`; neither has NUL or newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVar {
    name: String,
    value: String,
}

impl EnvVar {
    /// Checks a name and a value.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn new(name: &str, value: &str) -> Result<Self, &'static str> {
        if name.is_empty() {
            return Err("the name is empty");
        }
        if name.contains(['=', '\0', '\n']) {
            return Err("the name holds '=', NUL or a newline");
        }
        if value.contains(['\0', '\n']) {
            return Err("the value holds NUL or a newline");
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// An absolute path inside an image: no `..`, no `.`, no empty parts, no NUL, no newline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImagePath(String);

impl ImagePath {
    /// Checks and normalises a path. A relative one counts from the root, as in Docker.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_PATH_BYTES {
            return Err("the path is longer than 4095 bytes");
        }
        if text.contains(['\0', '\n']) {
            return Err("the path holds NUL or a newline");
        }
        let mut path = String::new();
        for part in text.split('/').filter(|p| !p.is_empty() && *p != ".") {
            if part == ".." {
                return Err("the path holds '..'");
            }
            path.push('/');
            path.push_str(part);
        }
        Ok(Self(if path.is_empty() { "/".to_owned() } else { path }))
    }

    /// The path as text, with a leading slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True where something mounted there would hide or replace what the system provides.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0 == "/"
            || ["/proc", "/sys", "/dev"]
                .iter()
                .any(|r| self.0 == *r || self.0.strip_prefix(r).is_some_and(|rest| rest.starts_with('/')))
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `USER[:GROUP]`, each a name or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSpec {
    /// The user.
    pub user: UserName,
    /// The group; the user's own where there is none.
    pub group: Option<UserName>,
}

/// A user or group by name, to be looked up inside the image, or by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserName {
    /// A name of at most 64 letters, digits, `_`, `-`, `.` and a final `$`.
    Name(String),
    /// A number. 2^32-1 means "unchanged" to the kernel and is never one.
    Id(u32),
}

impl UserName {
    fn new(text: &str) -> Result<Self, &'static str> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            // Not a name when it does not fit: CVE-2024-40635 was such a number turning into root.
            return match text.parse::<u32>() {
                Ok(id) if id != u32::MAX => Ok(Self::Id(id)),
                _ => Err("the number is larger than 4294967294"),
            };
        }
        let body = text.strip_suffix('$').unwrap_or(text);
        let first = body.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        let rest = body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !first || !rest || text.len() > 64 {
            return Err(
                "a name is at most 64 letters, digits, '_', '-' and '.', and starts with none of the last two",
            );
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl UserSpec {
    /// Reads `USER[:GROUP]`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        Ok(Self { user: UserName::new(user)?, group: group.map(UserName::new).transpose()? })
    }
}

/// A signal, as its number on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSignal(u8);

// Numbers of x86 and ARM Linux, signal(7).
const SIGNALS: [(&str, u8); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];
const RTMIN: u8 = 34;
const RTMAX: u8 = 64;

impl StopSignal {
    /// SIGTERM, the default.
    pub const TERM: Self = Self(15);

    /// Reads `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3` or `RTMAX-1`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let unknown = "not a signal's name, and not a number from 1 to 64";
        if let Ok(number) = text.parse::<u8>() {
            return if (1..=RTMAX).contains(&number) { Ok(Self(number)) } else { Err(unknown) };
        }
        let name = text.strip_prefix("SIG").unwrap_or(text);
        if let Some((_, number)) = SIGNALS.iter().find(|(known, _)| *known == name) {
            return Ok(Self(*number));
        }
        let offset = |text: &str, sign: char| -> Option<u8> {
            if text.is_empty() { Some(0) } else { text.strip_prefix(sign)?.parse().ok() }
        };
        let number = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
            (Some(rest), _) => offset(rest, '+').and_then(|n| RTMIN.checked_add(n)),
            (_, Some(rest)) => offset(rest, '-').and_then(|n| RTMAX.checked_sub(n)),
            _ => None,
        };
        number.filter(|n| (RTMIN..=RTMAX).contains(n)).map(Self).ok_or(unknown)
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }
}

#[derive(Deserialize)]
struct Document {
    architecture: String,
    os: String,
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    config: Option<Fields>,
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    diff_ids: Option<Vec<Digest>>,
}

/// Docker writes `null` for what is empty, hence the options.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Fields {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    user: Option<String>,
    working_dir: Option<String>,
    stop_signal: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    volumes: Option<BTreeMap<String, serde_json::Value>>,
}

impl ImageConfig {
    /// Parses an image's configuration document.
    ///
    /// # Errors
    /// [`Error::Config`] with the field that holds what must not reach the system; [`Error::Document`] for what
    /// is not such a document.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|e| Error::document("image configuration", e.to_string()))?;
        if document.rootfs.kind != "layers" {
            return Err(Error::config("rootfs.type", "must be \"layers\""));
        }
        let diff_ids = document.rootfs.diff_ids.unwrap_or_default();
        if diff_ids.len() > MAX_LAYERS {
            return Err(Error::config("rootfs.diff_ids", format!("more than {MAX_LAYERS} layers")));
        }
        let fields = document.config.unwrap_or_default();
        let user = fields.user.filter(|u| !u.is_empty());
        let stop = fields.stop_signal.filter(|s| !s.is_empty());
        Ok(Self {
            platform: Platform {
                os: document.os,
                architecture: document.architecture,
                variant: document.variant.filter(|v| !v.is_empty()),
            },
            env: env(fields.env.unwrap_or_default())?,
            entrypoint: args("config.Entrypoint", fields.entrypoint.unwrap_or_default())?,
            cmd: args("config.Cmd", fields.cmd.unwrap_or_default())?,
            user: user.map(|u| UserSpec::new(&u)).transpose().map_err(|p| Error::config("config.User", p))?,
            working_dir: ImagePath::new(&fields.working_dir.unwrap_or_default())
                .map_err(|p| Error::config("config.WorkingDir", p))?,
            stop_signal: stop
                .map(|s| StopSignal::new(&s))
                .transpose()
                .map_err(|p| Error::config("config.StopSignal", p))?,
            labels: labels(fields.labels.unwrap_or_default())?,
            volumes: volumes(fields.volumes.unwrap_or_default())?,
            diff_ids,
        })
    }
}

fn env(list: Vec<String>) -> Result<Vec<EnvVar>> {
    if list.len() > MAX_ENV || list.iter().map(String::len).sum::<usize>() > MAX_EXEC_BYTES {
        return Err(Error::config(
            "config.Env",
            format!("more than {MAX_ENV} variables or {MAX_EXEC_BYTES} bytes"),
        ));
    }
    let mut vars: Vec<EnvVar> = Vec::with_capacity(list.len());
    for (n, text) in list.iter().enumerate() {
        let field = || format!("config.Env[{n}]");
        let (name, value) = text.split_once('=').ok_or_else(|| Error::config(field(), "there is no '='"))?;
        let var = EnvVar::new(name, value).map_err(|p| Error::config(field(), p))?;
        match vars.iter_mut().find(|v| v.name == var.name) {
            Some(earlier) => *earlier = var,
            None => vars.push(var),
        }
    }
    Ok(vars)
}

/// Arguments may hold newlines: a multi-line script after `sh -c` is ordinary. They are always passed as a
/// list, never as text.
fn args(field: &str, list: Vec<String>) -> Result<Vec<String>> {
    if list.len() > MAX_ARGS || list.iter().map(String::len).sum::<usize>() > MAX_EXEC_BYTES {
        return Err(Error::config(
            field,
            format!("more than {MAX_ARGS} arguments or {MAX_EXEC_BYTES} bytes"),
        ));
    }
    for (n, arg) in list.iter().enumerate() {
        if arg.contains('\0') {
            return Err(Error::config(format!("{field}[{n}]"), "holds NUL"));
        }
    }
    if list.first().is_some_and(|program| program.contains('\n')) {
        return Err(Error::config(format!("{field}[0]"), "holds a newline"));
    }
    Ok(list)
}

fn labels(map: BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    if map.len() > MAX_CONFIG_MAP {
        return Err(Error::config("config.Labels", format!("more than {MAX_CONFIG_MAP}")));
    }
    if let Some((key, _)) = map.iter().find(|(k, v)| k.contains(['\0', '\n']) || v.contains('\0')) {
        return Err(Error::config(format!("config.Labels[{key:?}]"), "holds NUL, or a newline in the name"));
    }
    Ok(map)
}

fn volumes(map: BTreeMap<String, serde_json::Value>) -> Result<Vec<ImagePath>> {
    if map.len() > MAX_CONFIG_MAP {
        return Err(Error::config("config.Volumes", format!("more than {MAX_CONFIG_MAP}")));
    }
    let mut paths = Vec::with_capacity(map.len());
    for text in map.keys() {
        let field = || format!("config.Volumes[{text:?}]");
        let path = ImagePath::new(text).map_err(|p| Error::config(field(), p))?;
        if path.is_reserved() {
            return Err(Error::config(field(), "is /, or in /proc, /sys or /dev, which the system provides"));
        }
        paths.push(path);
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
