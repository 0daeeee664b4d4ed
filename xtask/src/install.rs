//! What the tests and the demonstration need besides a Rust toolchain. Nothing is done for what is there.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::run::quietly;

/// Debian's package of kubectl.
const KUBECTL_PACKAGE: &str = "kubernetes-client";

/// Makes sure that there is a `kubectl`.
pub(crate) fn kubectl() -> Result<(), String> {
    if on_path("kubectl") {
        return Ok(());
    }
    println!("      installing kubectl with apt-get ({KUBECTL_PACKAGE})");
    apt(&[KUBECTL_PACKAGE]).map_err(|e| {
        format!("kubectl is missing and could not be installed: {e}\nInstall it, for example from https://kubernetes.io/docs/tasks/tools/")
    })
}

/// Makes sure that there is Node.
pub(crate) fn node() -> Result<(), String> {
    if on_path("node") {
        return Ok(());
    }
    println!("      installing Node with apt-get (nodejs)");
    apt(&["nodejs"]).map_err(|e| format!("node is missing and could not be installed: {e}"))
}

/// Makes sure that a machine can be booted in a container: systemd's own, which systemd-nspawn brings
/// along, and what it needs for messages and for users that only an image knows.
pub(crate) fn machine() -> Result<(), String> {
    const PACKAGES: [&str; 4] = ["systemd-container", "systemd-sysv", "dbus", "libnss-systemd"];
    let installed = |package: &&str| {
        let query = ["--show", "--showformat", "${db:Status-Abbrev}", package];
        quietly(Command::new("dpkg-query").args(query)).is_ok_and(|status| status.starts_with("ii"))
    };
    if PACKAGES.iter().all(installed) {
        return Ok(());
    }
    println!("      installing a systemd to boot in a container with apt-get ({})", PACKAGES.join(", "));
    apt(&PACKAGES).map_err(|e| format!("systemd-nspawn is missing and could not be installed: {e}"))
}

/// Makes sure that there are rustfmt and clippy.
pub(crate) fn components() -> Result<(), String> {
    for (component, program) in [("rustfmt", "cargo-fmt"), ("clippy", "cargo-clippy")] {
        if !on_path(program) || quietly(Command::new(program).arg("--version")).is_err() {
            println!("      adding {component} with rustup");
            quietly(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Installs packages; as root, or by a sudo that asks nothing.
fn apt(packages: &[&str]) -> Result<(), String> {
    let root = quietly(Command::new("id").arg("-u"))?.trim() == "0";
    let apt_get = || {
        let mut command = if root {
            Command::new("apt-get")
        } else {
            let mut command = Command::new("sudo");
            command.args(["-n", "apt-get"]);
            command
        };
        command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command
    };
    quietly(apt_get().args(["update", "-qq"]))?;
    quietly(apt_get().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages)).map(drop)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|d: PathBuf| d.join(program)).any(|p| p.is_file())
}
