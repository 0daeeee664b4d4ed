use std::path::{Path, PathBuf};

use crate::launch::{LaunchMount, LaunchRoot, LaunchSpec, Overlay};
use crate::unit::{Mount, MountSource, Root};
use crate::{Error, Isolation, Result, Unit};

/// The directories of one unit for one run.
#[derive(Debug)]
pub(super) struct RunDirs {
    root: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

impl RunDirs {
    pub(super) fn below(dir: &Path) -> Self {
        Self { root: dir.join("root"), upper: dir.join("upper"), work: dir.join("work") }
    }

    /// Makes them anew: what an earlier run wrote is gone. Blocking.
    pub(super) fn prepare(&self) -> Result<()> {
        for dir in [&self.root, &self.upper, &self.work] {
            horchestra_oci::remove_tree(dir)?;
            std::fs::create_dir_all(dir).map_err(|e| Error::io(dir.display().to_string(), e))?;
        }
        Ok(())
    }
}

/// What the launcher is told for a unit, or why this cannot be done here.
pub(super) fn spec(
    unit: &Unit,
    isolation: &Isolation,
    shared_roots: bool,
    dirs: &RunDirs,
) -> Result<LaunchSpec> {
    let user = *isolation == Isolation::UserNamespace;
    if user && !unit.user.groups.is_empty() {
        tracing::debug!("{}: supplementary groups do not exist in a user namespace with one user", unit.name);
    }
    let root = match (&unit.root, isolation) {
        (Root::Host, _) => LaunchRoot::Host,
        (_, Isolation::None(why)) => return Err(Error::unsupported("running an image", why.clone())),
        (Root::Private(dir), Isolation::RootDirectory) => LaunchRoot::Chroot(dir.clone()),
        (Root::Private(dir), _) => LaunchRoot::Mounts { dir: dir.clone(), overlay: None, user },
        (Root::Shared(_), _) if !shared_roots => {
            return Err(Error::unsupported(
                "a writable layer on a shared image",
                "the kernel does not allow overlay mounts; use a private root",
            ));
        }
        (Root::Shared(lower), _) => {
            let overlay =
                Overlay { lower: lower.clone(), upper: dirs.upper.clone(), work: dirs.work.clone() };
            LaunchRoot::Mounts { dir: dirs.root.clone(), overlay: Some(overlay), user }
        }
    };
    if !unit.mounts.is_empty() && !matches!(root, LaunchRoot::Mounts { .. }) {
        return Err(Error::unsupported("mounting volumes", "no own mount namespace is allowed; run as root"));
    }
    if unit.mounts.iter().any(|m| m.path.is_reserved()) {
        return Err(Error::invalid("mounts", "/, /proc, /sys and /dev are the system's"));
    }
    Ok(LaunchSpec {
        argv: unit.argv.clone(),
        env: unit.env.iter().map(|v| (v.name().to_owned(), v.value().to_owned())).collect(),
        root,
        working_dir: unit.working_dir.as_str().to_owned(),
        uid: unit.user.uid,
        gid: unit.user.gid,
        groups: unit.user.groups.clone(),
        mounts: unit.mounts.iter().map(mount).collect(),
        drop_capabilities: unit.security.drop_capabilities.clone(),
        no_new_privileges: !unit.security.allow_privilege_escalation,
        probe: false,
    })
}

fn mount(mount: &Mount) -> LaunchMount {
    let to = mount.path.as_str().to_owned();
    match &mount.source {
        MountSource::Bind { from, read_only } => {
            LaunchMount::Bind { from: from.clone(), to, read_only: *read_only }
        }
        MountSource::Tmpfs { size } => LaunchMount::Tmpfs { to, size: *size },
    }
}
