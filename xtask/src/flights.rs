//! `cargo xtask flights`: the example flights as WebAssembly modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::run::{quietly, root};
use crate::wasm_target::{self, TARGET};

/// A package and what its module is called.
type Flight = (&'static str, &'static str);

/// The examples.
pub(crate) const EXAMPLES: [Flight; 2] = [("example-pipeline", "pipeline.wasm"), ("example-app", "app.wasm")];
/// What only the tests fly.
const SCRIPT: Flight = ("script-flight", "script.wasm");

/// Builds the examples and says where they are.
pub(crate) fn command(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    match arguments.next().as_deref() {
        None => build(&EXAMPLES, |_, cargo| quietly(cargo.arg("--quiet")).map(drop)),
        Some("--tests") => for_tests(),
        Some(other) => Err(format!("flights takes --tests or nothing, not {other:?}")),
    }
}

/// Builds everything that the tests fly.
pub(crate) fn for_tests() -> Result<(), String> {
    let all: Vec<Flight> = EXAMPLES.into_iter().chain([SCRIPT]).collect();
    build(&all, |_, cargo| quietly(cargo.arg("--quiet")).map(drop))
}

/// Builds flights with whatever runs cargo; `run` is told which flight it is.
pub(crate) fn build(
    all: &[Flight],
    run: impl Fn(&str, &mut Command) -> Result<(), String>,
) -> Result<(), String> {
    let toolchain = wasm_target::ensure()?;
    let target = root().join("target/wasm");
    let flights = root().join("target/flights");
    fs::create_dir_all(&flights).map_err(|e| format!("{}: {e}", flights.display()))?;
    for (package, name) in all.iter().copied() {
        let started = Instant::now();
        let mut cargo = toolchain.cargo("rustc");
        // Only as a cdylib: together with an rlib there is no link-time optimisation.
        cargo.args(["--profile", "flight", "--package", package, "--lib", "--crate-type", "cdylib"]);
        cargo.arg("--target-dir").arg(&target);
        // What measures the tests around this build has no place in a module.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("LLVM_PROFILE_FILE");
        run(name, &mut cargo)?;
        let built = target.join(TARGET).join("flight").join(package.replace('-', "_")).with_extension("wasm");
        let module = flights.join(name);
        let size = publish(&built, &module)?;
        println!("{}  {} KiB  {:.1} s", shown(&module), size.div_ceil(1024), started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The profile of flights, for crates whose workspace does not have it. The same settings as in this
/// one's manifest, so that dependencies are compiled once.
const PROFILE: [&str; 6] = [
    "profile.flight.inherits='release'",
    "profile.flight.opt-level='s'",
    "profile.flight.lto=true",
    "profile.flight.codegen-units=1",
    "profile.flight.panic='abort'",
    "profile.flight.strip=true",
];

/// Builds the crate in another directory as a flight.
pub(crate) fn elsewhere(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let directory = arguments.next().ok_or("wasm takes the directory of a crate")?;
    let mut cargo = wasm_target::ensure()?.cargo("build");
    cargo
        .args(PROFILE.iter().flat_map(|setting| ["--config", setting]))
        .args(["--profile", "flight"])
        .arg("--manifest-path")
        .arg(Path::new(&directory).join("Cargo.toml"));
    cargo.arg("--target-dir").arg(root().join("target/wasm"));
    // A crate of its own chooses the version of Kubernetes itself.
    cargo.env_remove("K8S_OPENAPI_ENABLED_VERSION");
    quietly(&mut cargo)?;
    println!("{}", root().join("target/wasm").join(TARGET).join("flight").display());
    Ok(())
}

/// Copies a module so that a reader never sees half of it; one that has not changed is left alone.
fn publish(built: &Path, module: &Path) -> Result<usize, String> {
    let problem = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let bytes = fs::read(built).map_err(|e| problem(built, e))?;
    if fs::read(module).is_ok_and(|old| old == bytes) {
        return Ok(bytes.len());
    }
    let new = module.with_extension(format!("new{}", std::process::id()));
    fs::write(&new, &bytes).map_err(|e| problem(&new, e))?;
    fs::rename(&new, module).map_err(|e| problem(module, e))?;
    Ok(bytes.len())
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).map_or(PathBuf::from(path), Path::to_owned).display().to_string()
}
