use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::launch::{ASK, LaunchRoot, LaunchSpec, Overlay};
use crate::{Capabilities, Error, Isolation, Result};

/// Finds out what is possible by doing it: the launcher builds a root and stops before running anything.
pub(super) fn detect(launcher: Option<&Path>, state: &Path) -> Result<Capabilities> {
    let mut found = Capabilities {
        name: "processes",
        isolation: Isolation::None(String::new()),
        shared_roots: false,
        limits: false,
        notes: vec![
            "units are child processes of this program, not systemd units: they end with it".to_owned(),
            "CPU and memory limits are not enforced".to_owned(),
        ],
    };
    let Some(launcher) = launcher else {
        found.isolation = Isolation::None(
            "this program does not call horchestra_systemd::launch::run_if_asked() at the start of main, and no \
             launcher was named"
                .to_owned(),
        );
        return Ok(found);
    };
    let dir = state.join("probe");
    let (lower, upper, work, root) =
        (dir.join("lower"), dir.join("upper"), dir.join("work"), dir.join("root"));
    for dir in [&lower, &upper, &work, &root] {
        std::fs::create_dir_all(dir).map_err(|e| Error::io(dir.display().to_string(), e))?;
    }
    let overlay = Overlay { lower: lower.clone(), upper, work };
    let is_root = rustix::process::geteuid().is_root();
    let user = !is_root;
    let isolated = if user { Isolation::UserNamespace } else { Isolation::Mounts };
    let attempts = [
        (isolated.clone(), true, LaunchRoot::Mounts { dir: root, overlay: Some(overlay), user }),
        (isolated, false, LaunchRoot::Mounts { dir: lower.clone(), overlay: None, user }),
        (Isolation::RootDirectory, false, LaunchRoot::Chroot(lower)),
    ];
    let mut whys = Vec::new();
    for (isolation, shared_roots, root) in attempts {
        match probe(launcher, &dir.join("error"), root) {
            Ok(()) => {
                found.isolation = isolation;
                found.shared_roots = shared_roots;
                break;
            }
            Err(why) => whys.push(why),
        }
    }
    if let Isolation::None(reason) = &mut found.isolation {
        *reason = format!("neither root's rights nor user namespaces are allowed ({})", whys.join("; "));
    } else {
        found.notes.extend(whys.into_iter().map(|why| format!("not possible: {why}")));
    }
    horchestra_oci::remove_tree(&dir)?;
    Ok(found)
}

fn probe(launcher: &Path, errors: &Path, root: LaunchRoot) -> std::result::Result<(), String> {
    let spec = LaunchSpec {
        argv: Vec::new(),
        env: Vec::new(),
        root,
        working_dir: "/".to_owned(),
        uid: 0,
        gid: 0,
        groups: Vec::new(),
        mounts: Vec::new(),
        drop_capabilities: Vec::new(),
        no_new_privileges: true,
        probe: true,
    };
    let text = serde_json::to_vec(&spec).map_err(|e| e.to_string())?;
    let mut child = Command::new(launcher)
        .arg(ASK)
        .arg(errors)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("starting {}: {e}", launcher.display()))?;
    if let Some(mut input) = child.stdin.take() {
        // Where it is no launcher, it may be gone already; its exit says so.
        let _ = input.write_all(&text);
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() {
        return Ok(());
    }
    let why = std::fs::read_to_string(errors).unwrap_or_default();
    Err(if why.is_empty() { format!("{} is no launcher ({status})", launcher.display()) } else { why })
}
