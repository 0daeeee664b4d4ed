//! `cargo xtask web`: the examples as modules for pages and Node.

use std::process::Command;

use crate::run::{cargo, quietly, root};
use crate::wasm_target::{self, TARGET};

/// Builds the pipeline's function to `target/web/pipeline`.
pub(crate) fn command() -> Result<(), String> {
    let toolchain = wasm_target::ensure()?;
    let target = root().join("target/wasm");
    let mut build = toolchain.cargo("rustc");
    build.args(["--profile", "flight", "--package", "example-pipeline", "--lib", "--crate-type", "cdylib"]);
    build.args(["--features", "horchestra-flight/web", "--quiet", "--target-dir"]).arg(&target);
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("LLVM_PROFILE_FILE");
    quietly(&mut build)?;
    let module = target.join(TARGET).join("flight/example_pipeline.wasm");

    let tools = root().join("target/tools");
    let mut bindgen = cargo();
    bindgen
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(root().join("xtask/bindgen/Cargo.toml"));
    bindgen.arg("--target-dir").arg(&tools);
    quietly(&mut bindgen)?;
    let web = root().join("target/web/pipeline");
    quietly(Command::new(tools.join("debug/horchestra-bindgen")).arg(&module).arg(&web))?;
    println!("target/web/pipeline/example_pipeline.js");
    Ok(())
}
