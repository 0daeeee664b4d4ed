use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the launcher is told, as JSON on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchSpec {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub root: LaunchRoot,
    pub working_dir: String,
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub mounts: Vec<LaunchMount>,
    pub drop_capabilities: Vec<String>,
    pub no_new_privileges: bool,
    /// Do everything but run the program. This is how it is found out what is possible.
    pub probe: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum LaunchRoot {
    Host,
    /// `chroot` to a directory, without any mounts.
    Chroot(PathBuf),
    /// Own mounts with this directory as the root, in a user namespace where `user` says so.
    Mounts {
        dir: PathBuf,
        overlay: Option<Overlay>,
        user: bool,
    },
}

/// An overlay to mount on the root directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Overlay {
    pub lower: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum LaunchMount {
    Bind { from: PathBuf, to: String, read_only: bool },
    Tmpfs { to: String, size: Option<u64> },
}
