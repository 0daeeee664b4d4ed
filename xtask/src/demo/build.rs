//! What the demonstration runs: the command, the flights, and an image.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Interrupted;
use crate::flights;
use crate::run::{cargo, quietly, root};

/// How often progress is shown where lines cannot be rewritten.
const SLOW: Duration = Duration::from_secs(15);
/// How much of what cargo said is shown when it fails.
const TAIL: usize = 60;

/// The programs that were built.
pub(super) struct Programs {
    pub(super) horchestra: PathBuf,
    image: PathBuf,
}

/// Builds the command, and the program that writes images.
pub(super) fn programs(interrupted: &Interrupted) -> Result<Programs, String> {
    let mut build = cargo();
    build.args(["build", "--package", "horchestra-cli", "--package", "horchestra-oci"]);
    build.args(["--bin", "horchestra", "--example", "image"]);
    with_progress("horchestra", &mut build)?;
    interrupted.check()?;
    let target = target_directory()?.join("debug");
    Ok(Programs { horchestra: target.join("horchestra"), image: target.join("examples/image") })
}

/// Builds the example flights.
pub(super) fn flights(interrupted: &Interrupted) -> Result<(), String> {
    flights::build(&flights::EXAMPLES, with_progress)?;
    interrupted.check()
}

/// Makes the image that the examples name: a shell of our own, since nothing can be pulled here.
pub(super) fn image(programs: &Programs, directory: &Path) -> Result<(), String> {
    let started = Instant::now();
    let shell = directory.join("sh");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"]);
    quietly(rustc.arg(&shell).arg(root().join("xtask/demo/sh.rs")))?;
    let layout = directory.join("images/busybox");
    let mut image = Command::new(&programs.image);
    image.arg(&layout).arg("latest").arg(format!("{}:bin/sh", shell.display())).args(["--", "sh"]);
    quietly(&mut image)?;
    println!("  image busybox, with a small shell in it  {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn target_directory() -> Result<PathBuf, String> {
    let metadata = quietly(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    metadata["target_directory"].as_str().map(Into::into).ok_or_else(|| "no target directory".into())
}

/// Runs cargo with one line that says how far it is.
fn with_progress(what: &str, command: &mut Command) -> Result<(), String> {
    let started = Instant::now();
    let rewritable = std::io::stdout().is_terminal();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| format!("cargo: {e}"))?;
    let (mut crates, mut said, mut shown) = (0, Vec::new(), started);
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        let line = line.map_err(|e| format!("cargo: {e}"))?;
        crates += usize::from(line.trim_start().starts_with("Compiling"));
        let seconds = started.elapsed().as_secs();
        if rewritable {
            print!("\r\x1b[K  {what}: {crates} crates, {seconds} s: {}", line.trim());
        } else if shown.elapsed() > SLOW {
            shown = Instant::now();
            println!("  {what}: {crates} crates, {seconds} s: {}", line.trim());
        }
        // Progress that is not seen is no reason to stop.
        let _ = std::io::stdout().flush();
        said.push(line);
    }
    if rewritable {
        print!("\r\x1b[K");
    }
    let status = child.wait().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        let tail = said.get(said.len().saturating_sub(TAIL)..).unwrap_or_default().join("\n");
        return Err(format!("{what} could not be built ({status}):\n{tail}"));
    }
    println!("  {what}  {:.1} s, {crates} crates compiled", started.elapsed().as_secs_f64());
    Ok(())
}
