//! The compiled module of an example, built if need be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use horchestra_flight::contract::Evaluate;
use horchestra_wasm::{FlightEngine, Wasmi};

/// The module `name` in wasmi. `HORCHESTRA_FLIGHTS` names a directory with modules that are up to
/// date; without it `cargo xtask flights` builds what has changed.
pub(crate) fn module(name: &str) -> Arc<dyn Evaluate> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = std::env::var_os("HORCHESTRA_FLIGHTS").map_or_else(
        || {
            let built =
                Command::new(env!("CARGO")).args(["xtask", "flights"]).current_dir(&root).output().unwrap();
            assert!(
                built.status.success(),
                "cargo xtask flights: {}",
                String::from_utf8_lossy(&built.stderr)
            );
            root.join("target/flights")
        },
        Into::into,
    );
    let path = directory.join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Wasmi::new().unwrap().load(&bytes).unwrap()
}
