//! A standard library for WebAssembly: rustup's, or where rustup cannot reach its server, one that
//! is built from the sources in Debian's packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, quietly};

/// The target of flights.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// What Debian's own compiler is called among rustup's toolchains.
const DEBIAN_TOOLCHAIN: &str = "debian-web";
/// Debian's compiler, the sources of its standard library, and their linker.
const DEBIAN_PACKAGES: [&str; 5] = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm", "lld"];

/// Where the standard library comes from.
#[derive(Debug, Clone)]
pub(crate) enum Toolchain {
    /// It is there, ready made.
    Rustup,
    /// Debian's compiler builds it along with the flights.
    Debian {
        /// rustup's linker; Debian's link to it dangles where its package is missing.
        linker: PathBuf,
    },
}

/// Makes sure that flights can be built. Prints nothing where nothing is to be done.
pub(crate) fn ensure() -> Result<Toolchain, String> {
    let sysroot = PathBuf::from(quietly(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    if has_std(&sysroot) {
        return Ok(Toolchain::Rustup);
    }
    println!("adding the target {TARGET} with rustup");
    let added = quietly(Command::new("rustup").args(["target", "add", TARGET]));
    if has_std(&sysroot) {
        return Ok(Toolchain::Rustup);
    }
    println!("rustup cannot fetch it; using Debian's packages {}", DEBIAN_PACKAGES.join(", "));
    debian(&sysroot).map_err(|debian| {
        let rustup = added.err().unwrap_or_default();
        format!(
            "the target {TARGET} cannot be set up.\nWith rustup: {rustup}\nWith Debian's packages: {debian}"
        )
    })
}

fn has_std(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

fn debian(sysroot: &Path) -> Result<Toolchain, String> {
    if !Path::new("/usr/src")
        .read_dir()
        .is_ok_and(|mut d| d.any(|e| e.is_ok_and(|e| is_source(&e.file_name()))))
    {
        quietly(Command::new("apt-get").args(["update", "-qq"]))?;
        let install = ["install", "-y", "-qq", "--no-install-recommends"];
        quietly(
            Command::new("apt-get")
                .args(install)
                .args(DEBIAN_PACKAGES)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
    }
    quietly(Command::new("rustup").args(["toolchain", "link", DEBIAN_TOOLCHAIN, "/usr"]))?;
    let linker = sysroot.join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    let linker = if linker.exists() { linker } else { "rust-lld".into() };
    Ok(Toolchain::Debian { linker })
}

fn is_source(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("rustc-")
}

impl Toolchain {
    /// A cargo for the target; add a subcommand's arguments.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match self {
            Self::Rustup => cargo(),
            Self::Debian { linker } => {
                // Through rustup's cargo, which alone understands `+NAME`.
                let mut command = Command::new("cargo");
                command.current_dir(crate::run::root()).arg(format!("+{DEBIAN_TOOLCHAIN}"));
                command.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
                // Building std from source is not stable; Debian's compiler of the same release does it.
                command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                command
            }
        };
        command.arg(subcommand);
        if let Self::Debian { .. } = self {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command.args(["--target", TARGET]);
        command
    }
}
