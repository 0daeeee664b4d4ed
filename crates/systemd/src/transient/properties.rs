//! From a unit to systemd's typed properties. Nothing here is ever text that systemd parses as a
//! unit file. Source: systemd.service(5), systemd.exec(5), systemd.resource-control(5).

use std::path::Path;
use std::time::Duration;

use zbus::zvariant::Value;

use super::hardening;
use super::manager::Property;
use super::marks::Marks;
use crate::unit::{MountSource, Restart, Root};
use crate::{Error, Result, Unit};

/// The slice of all workloads.
const SLICE: &str = "horchestra.slice";
/// Mount flag: what is mounted below comes along. Source: mount(2).
const MS_REC: u64 = 16384;
/// No limit, for systemd.
const INFINITY: u64 = u64::MAX;
/// The first wait before a restart, and the longest; grown in so many steps where systemd can.
const RESTART: (Duration, Duration, u32) = (Duration::from_secs(1), Duration::from_secs(300), 8);
/// The wait where systemd cannot let it grow.
const CONSTANT_RESTART: Duration = Duration::from_secs(5);
/// The first version with `RestartSteps`.
pub(super) const GROWING_RESTARTS: u32 = 254;

/// What the node has prepared for a unit.
#[derive(Debug)]
pub(super) struct Site<'s> {
    /// systemd's version.
    pub(super) version: u32,
    /// The directory that the unit sees as `/`; none for the node's own.
    pub(super) root: Option<&'s Path>,
    /// The file with its environment.
    pub(super) environment: &'s Path,
    /// The program to run, as the unit sees it.
    pub(super) program: &'s str,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(INFINITY)
}

/// The wait before a unit is started again, as far as it is known beforehand.
pub(super) fn restart_wait(version: u32) -> Duration {
    if version >= GROWING_RESTARTS { RESTART.0 } else { CONSTANT_RESTART }
}

/// All properties of a unit.
pub(super) fn properties(unit: &Unit, site: &Site<'_>) -> Result<Vec<Property>> {
    let marks = Marks { name: unit.name.clone(), revision: unit.revision.clone() };
    let mut list: Vec<Property> = vec![
        ("Description", Value::from(format!("Horchestra workload {}", unit.name))),
        ("Slice", Value::from(SLICE)),
        ("LogExtraFields", Value::from(marks.fields())),
        ("SyslogIdentifier", Value::from(unit.name.to_string())),
        // Started means that the program was executed, not only forked.
        ("Type", Value::from("exec")),
        // The arguments are the program's; systemd must not look for variables in them.
        (
            "ExecStartEx",
            Value::from(vec![(site.program.to_owned(), unit.argv.clone(), vec!["no-env-expand"])]),
        ),
        ("EnvironmentFiles", Value::from(vec![(text(site.environment)?, false)])),
        ("WorkingDirectory", Value::from(unit.working_dir.as_str().to_owned())),
        ("UMask", Value::from(0o022_u32)),
        ("IgnoreSIGPIPE", Value::from(false)),
        // As container runtimes: the signal for the program, the end for everything.
        ("KillMode", Value::from("mixed")),
        ("KillSignal", Value::from(i32::from(unit.stop_signal.number()))),
        ("TimeoutStopUSec", Value::from(micros(unit.grace))),
        ("OOMPolicy", Value::from("kill")),
    ];
    list.extend(restart(unit.restart, site.version));
    if let Some(deadline) = unit.deadline {
        list.push(("RuntimeMaxUSec", Value::from(micros(deadline))));
    }
    if let Some(millis) = unit.limits.cpu_millis {
        list.push(("CPUQuotaPerSecUSec", Value::from(millis.saturating_mul(1000))));
    }
    if let Some(memory) = unit.limits.memory {
        list.push(("MemoryMax", Value::from(memory)));
    }
    if unit.user.uid != 0 {
        list.push(("User", Value::from(unit.user.uid.to_string())));
    }
    if unit.user.uid != 0 || unit.user.gid != 0 {
        list.push(("Group", Value::from(unit.user.gid.to_string())));
    }
    if !unit.user.groups.is_empty() {
        let groups: Vec<String> = unit.user.groups.iter().map(u32::to_string).collect();
        list.push(("SupplementaryGroups", Value::from(groups)));
    }
    if let Some(root) = site.root {
        list.push(("RootDirectory", Value::from(text(root)?)));
    }
    list.extend(mounts(unit)?);
    if unit.root != Root::Host {
        list.extend(hardening::properties(&unit.security));
    }
    Ok(list)
}

fn restart(restart: Restart, version: u32) -> Vec<Property> {
    let (word, tries) = match restart {
        Restart::Always => ("always", None),
        Restart::OnFailure { retries: Some(0) } => ("no", None),
        Restart::OnFailure { retries } => ("on-failure", retries),
    };
    // Without a number of tries there is no limit on starts: a unit is given up by nobody but its author.
    let (interval, burst) = match tries {
        Some(retries) => (INFINITY, retries.saturating_add(1)),
        None => (0, 0),
    };
    let mut list: Vec<Property> = vec![
        ("Restart", Value::from(word)),
        // Kept once it has ended well, to be seen; but a unit that always runs has no such end.
        ("RemainAfterExit", Value::from(restart != Restart::Always)),
        ("StartLimitIntervalUSec", Value::from(interval)),
        ("StartLimitBurst", Value::from(burst)),
        ("RestartUSec", Value::from(micros(restart_wait(version)))),
    ];
    if version >= GROWING_RESTARTS {
        list.push(("RestartSteps", Value::from(RESTART.2)));
        list.push(("RestartMaxDelayUSec", Value::from(micros(RESTART.1))));
    }
    list
}

fn mounts(unit: &Unit) -> Result<Vec<Property>> {
    type Bind = (String, String, bool, u64);
    let (mut writable, mut read_only): (Vec<Bind>, Vec<Bind>) = (Vec::new(), Vec::new());
    let mut memory: Vec<(String, String)> = Vec::new();
    for mount in &unit.mounts {
        if mount.path.is_reserved() {
            return Err(Error::invalid("mounts", "/, /proc, /sys and /dev are the system's"));
        }
        let to = mount.path.as_str().to_owned();
        match &mount.source {
            MountSource::Bind { from, read_only: true } => read_only.push((text(from)?, to, false, MS_REC)),
            MountSource::Bind { from, read_only: false } => writable.push((text(from)?, to, false, MS_REC)),
            MountSource::Tmpfs { size } => {
                let size = size.map_or_else(String::new, |bytes| format!(",size={bytes}"));
                memory.push((to, format!("mode=1777,nosuid,nodev{size}")));
            }
        }
    }
    let mut list = Vec::new();
    if !writable.is_empty() {
        list.push(("BindPaths", Value::from(writable)));
    }
    if !read_only.is_empty() {
        list.push(("BindReadOnlyPaths", Value::from(read_only)));
    }
    if !memory.is_empty() {
        list.push(("TemporaryFileSystem", Value::from(memory)));
    }
    Ok(list)
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::invalid(path.display().to_string(), "systemd takes only paths that are valid UTF-8")
    })
}
