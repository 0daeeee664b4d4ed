use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::become_it::because;
use super::spec::{LaunchMount, Overlay};

/// Devices that every program may expect; all others stay outside.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEV_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
const SHM_BYTES: u64 = 64 << 20;
/// Most directories of one mount point.
const MAX_PARTS: usize = 64;

/// Builds the root in an own mount namespace and enters it.
pub(super) fn enter(
    dir: &Path,
    overlay: Option<&Overlay>,
    user: bool,
    extra: &[LaunchMount],
) -> Result<(), String> {
    // Nothing that is mounted from here on may be seen outside.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(because("making mounts private"))?;
    match overlay {
        Some(overlay) => mount_overlay(dir, overlay, user)?,
        None => mount_bind_recursive(dir, dir).map_err(because(format_args!("binding {}", dir.display())))?,
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, dir, flags, Mode::empty()).map_err(because(dir.display()))?;
    proc(&root)?;
    dev(&root)?;
    for mount in extra {
        one(&root, mount)?;
    }
    rustix::process::fchdir(&root).map_err(because("entering the root"))?;
    // The old root is put on top of the new one and then taken away: no directory for it is needed.
    rustix::process::pivot_root(".", ".").map_err(because("pivot_root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(because("leaving the old root"))?;
    rustix::process::chdir("/").map_err(because("changing to /"))
}

fn mount_overlay(dir: &Path, overlay: &Overlay, user: bool) -> Result<(), String> {
    let mut data = String::new();
    for (key, path) in
        [("lowerdir", &overlay.lower), ("upperdir", &overlay.upper), ("workdir", &overlay.work)]
    {
        let path = path.to_str().filter(|p| !p.contains([',', ':', '\\', '\0']));
        let path =
            path.ok_or("the data directory's path holds ',', ':' or '\\', which an overlay cannot have")?;
        data.push_str(&format!("{key}={path},"));
    }
    data.push_str(if user { "userxattr" } else { "index=off" });
    let data = CString::new(data).map_err(because("overlay"))?;
    mount("overlay", dir, "overlay", MountFlags::NODEV, data.as_c_str())
        .map_err(because("mounting an overlay"))
}

/// The mount point `path` inside the root, made if it is not there. Links are followed within the root only.
fn inside(root: &OwnedFd, path: &str, directory: bool) -> Result<OwnedFd, String> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let open =
        |path: &str, flags: OFlags| openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    if parts.len() > MAX_PARTS || parts.contains(&"..") {
        return Err(format!("mount point {path}: malformed"));
    }
    let mut at = open(".", OFlags::PATH).map_err(because("the root"))?;
    for n in 1..=parts.len() {
        let so_far = parts.get(..n).unwrap_or_default().join("/");
        let name = parts.get(n - 1).copied().unwrap_or_default();
        let last_file = n == parts.len() && !directory;
        at = match open(&so_far, OFlags::PATH) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => {
                if last_file {
                    let flags =
                        OFlags::CREATE | OFlags::WRONLY | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    openat(&at, name, flags, Mode::RUSR | Mode::WUSR).map_err(because(&so_far))?;
                } else {
                    mkdirat(&at, name, Mode::from_raw_mode(0o755)).map_err(because(&so_far))?;
                }
                open(&so_far, OFlags::PATH).map_err(because(&so_far))?
            }
            Err(e) => return Err(format!("mount point {path}: {e}")),
        };
    }
    Ok(at)
}

/// A name for an open file that `mount` takes, and that cannot be changed on the way.
fn by_fd(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn proc(root: &OwnedFd) -> Result<(), String> {
    let at = inside(root, "proc", true)?;
    mount_bind_recursive("/proc", by_fd(&at)).map_err(because("mounting /proc"))?;
    // What was opened before the mount lies below it.
    let at = inside(root, "proc", true)?;
    let flags =
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount(by_fd(&at), flags, "").map_err(because("making /proc read-only"))
}

fn dev(root: &OwnedFd) -> Result<(), String> {
    let at = inside(root, "dev", true)?;
    tmpfs(&at, "mode=755,size=65536").map_err(because("mounting /dev"))?;
    let dev = inside(root, "dev", true)?;
    for name in DEVICES {
        let from = format!("/dev/{name}");
        if !Path::new(&from).exists() {
            continue;
        }
        let at = inside(root, &format!("dev/{name}"), false)?;
        mount_bind(&from, by_fd(&at)).map_err(because(format_args!("mounting {from}")))?;
    }
    for (name, to) in DEV_LINKS {
        symlinkat(to, &dev, name).map_err(because(format_args!("/dev/{name}")))?;
    }
    let at = inside(root, "dev/shm", true)?;
    tmpfs(&at, &format!("mode=1777,size={SHM_BYTES}")).map_err(because("mounting /dev/shm"))
}

fn tmpfs(at: &OwnedFd, data: &str) -> Result<(), String> {
    let data = CString::new(data).map_err(because("tmpfs"))?;
    mount("tmpfs", by_fd(at), "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, data.as_c_str())
        .map_err(|e| e.to_string())
}

fn one(root: &OwnedFd, what: &LaunchMount) -> Result<(), String> {
    match what {
        LaunchMount::Tmpfs { to, size } => {
            let at = inside(root, to, true)?;
            let data = match size {
                Some(size) => format!("mode=1777,size={size}"),
                None => "mode=1777".to_owned(),
            };
            tmpfs(&at, &data).map_err(because(format_args!("mounting {to}")))
        }
        LaunchMount::Bind { from, to, read_only } => {
            let failed = format!("mounting {} on {to}", from.display());
            let at = inside(root, to, from.is_dir())?;
            mount_bind(from.as_path(), by_fd(&at)).map_err(because(&failed))?;
            if *read_only {
                let at = inside(root, to, from.is_dir())?;
                let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                mount_remount(by_fd(&at), flags, "").map_err(because(&failed))?;
            }
            Ok(())
        }
    }
}
