//! What the tests need and the machine may not have.

use std::process::Command;

use crate::run::quietly;
use crate::test::has;
use crate::wasm_target;

/// Installs what is missing, with the machine's own package client.
pub(crate) fn for_tests() -> Result<(), String> {
    wasm_target::ensure()?;
    if !has("kubectl") {
        packages(&["kubernetes-client"]).map_err(|e| {
            format!("kubectl is missing and could not be installed: {e}\nInstall kubectl and run this again.")
        })?;
    }
    Ok(())
}

fn packages(names: &[&str]) -> Result<(), String> {
    println!("installing {}", names.join(", "));
    quietly(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(names);
    quietly(install.env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}
