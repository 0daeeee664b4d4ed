use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Mode;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use crate::unit::{DEFAULT_PATH, is_dropped};

use super::{FAILED, LaunchRoot, LaunchSpec, mounts};

/// Most bytes of a specification; far above what a unit's bounds allow.
const MAX_SPEC: u64 = 8 << 20;

/// Reads the specification and becomes the workload. Returns only where that fails, with the exit code.
pub(super) fn run(errors: &Path) -> i32 {
    // Opened now: once the root has changed, this path means something else.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(errors);
    let Ok(mut file) = file else { return FAILED };
    match read_spec().and_then(|spec| become_workload(&spec)) {
        Ok(()) => 0,
        Err(why) => {
            // The parent sees an empty file and the exit code where even this fails.
            let _ = file.write_all(why.as_bytes());
            FAILED
        }
    }
}

fn read_spec() -> Result<LaunchSpec, String> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_SPEC)
        .read_to_string(&mut text)
        .map_err(|e| format!("reading what to start: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("reading what to start: {e}"))
}

pub(super) fn because<E: std::fmt::Display>(what: impl std::fmt::Display) -> impl FnOnce(E) -> String {
    move |e| format!("{what}: {e}")
}

fn become_workload(spec: &LaunchSpec) -> Result<(), String> {
    let null = File::open("/dev/null").map_err(because("/dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(because("standard input"))?;
    drop(null);
    match &spec.root {
        LaunchRoot::Host => {}
        LaunchRoot::Chroot(dir) => {
            rustix::process::chroot(dir.as_path())
                .map_err(because(format_args!("chroot to {}", dir.display())))?;
            rustix::process::chdir("/").map_err(because("changing to /"))?;
        }
        LaunchRoot::Mounts { dir, overlay, user } => {
            unshare(*user, spec)?;
            mounts::enter(dir, overlay.as_ref(), *user, &spec.mounts)?;
        }
    }
    if spec.probe {
        return Ok(());
    }
    let user_namespace = matches!(&spec.root, LaunchRoot::Mounts { user: true, .. });
    if !user_namespace {
        drop_privileges(spec)?;
    }
    bounding_set(&spec.drop_capabilities);
    if spec.no_new_privileges {
        rustix::thread::set_no_new_privs(true).map_err(because("no_new_privs"))?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    if std::env::set_current_dir(&spec.working_dir).is_err() {
        std::fs::create_dir_all(&spec.working_dir)
            .and_then(|()| std::env::set_current_dir(&spec.working_dir))
            .map_err(because(format_args!("working directory {}", spec.working_dir)))?;
    }
    let [program, args @ ..] = spec.argv.as_slice() else { return Err("there is no command".to_owned()) };
    let path = find(program, spec)?;
    let envs = spec.env.iter().map(|(k, v)| (k, v));
    let error = Command::new(&path).arg0(program).args(args).env_clear().envs(envs).exec();
    Err(format!("{}: {error}", path.display()))
}

/// Own mounts, and an own user namespace where we are not root.
#[allow(
    deprecated,
    reason = "the function is unsafe for shared descriptor tables only; this process has one thread and shares none"
)]
fn unshare(user: bool, spec: &LaunchSpec) -> Result<(), String> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let flags = if user { UnshareFlags::NEWUSER | UnshareFlags::NEWNS } else { UnshareFlags::NEWNS };
    rustix::thread::unshare(flags).map_err(because("own namespaces"))?;
    if user {
        // One user inside, whichever the image wants, is us outside.
        for (file, text) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{} {uid} 1", spec.uid)),
            ("/proc/self/gid_map", format!("{} {gid} 1", spec.gid)),
        ] {
            std::fs::write(file, text).map_err(because(file))?;
        }
    }
    Ok(())
}

fn drop_privileges(spec: &LaunchSpec) -> Result<(), String> {
    let root = rustix::process::geteuid().is_root();
    if !root {
        if (spec.uid, spec.gid) != (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        {
            return Err(format!("only root can start a process as user {}", spec.uid));
        }
        return Ok(());
    }
    let groups: Vec<Gid> = spec.groups.iter().map(|g| Gid::from_raw(*g)).collect();
    let (uid, gid) = (Uid::from_raw(spec.uid), Gid::from_raw(spec.gid));
    // Capabilities that root has are needed for this, so that those to keep are decided by the bounding set.
    bounding_set(&spec.drop_capabilities);
    rustix::thread::set_thread_groups(&groups).map_err(because("groups"))?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(because(format_args!("group {}", spec.gid)))?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(because(format_args!("user {}", spec.uid)))?;
    Ok(())
}

/// What root in a workload may keep: the list that container runtimes agree on.
const KEPT: [(&str, CapabilitySet); 14] = [
    ("CHOWN", CapabilitySet::CHOWN),
    ("DAC_OVERRIDE", CapabilitySet::DAC_OVERRIDE),
    ("FOWNER", CapabilitySet::FOWNER),
    ("FSETID", CapabilitySet::FSETID),
    ("KILL", CapabilitySet::KILL),
    ("SETGID", CapabilitySet::SETGID),
    ("SETUID", CapabilitySet::SETUID),
    ("SETPCAP", CapabilitySet::SETPCAP),
    ("NET_BIND_SERVICE", CapabilitySet::NET_BIND_SERVICE),
    ("NET_RAW", CapabilitySet::NET_RAW),
    ("SYS_CHROOT", CapabilitySet::SYS_CHROOT),
    ("MKNOD", CapabilitySet::MKNOD),
    ("AUDIT_WRITE", CapabilitySet::AUDIT_WRITE),
    ("SETFCAP", CapabilitySet::SETFCAP),
];

fn bounding_set(dropped: &[String]) {
    let keep = KEPT
        .iter()
        .filter(|(name, _)| !is_dropped(dropped, name))
        .fold(CapabilitySet::empty(), |all, (_, c)| all | *c);
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !keep.contains(capability) {
            // Fails for numbers that the kernel does not know, and where we have no right to; then there is
            // nothing to take away either, since the program gets no capabilities.
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
}

fn find(program: &str, spec: &LaunchSpec) -> Result<PathBuf, String> {
    if program.contains('/') {
        return Ok(PathBuf::from(program));
    }
    let path = spec.env.iter().find(|(k, _)| k == "PATH").map_or(DEFAULT_PATH, |(_, v)| v.as_str());
    path.split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| Path::new(dir).join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("{program}: not found in PATH ({path})"))
}
