//! How fast Horchestra is. Everything is measured in one run, beside what it is compared with, so
//! that ratios hold on any machine.

mod allocated;
mod cold_start;
mod disk;
mod evaluation;
mod idle;
mod memory;
mod reaction;
mod reconciles;
mod source;
mod table;
mod thing;

use std::path::PathBuf;

use self::table::Table;

type Failure = Box<dyn std::error::Error>;

#[global_allocator]
static ALLOCATOR: allocated::Counting = allocated::Counting;

/// Where `cargo xtask flights` has put the example.
fn pipeline() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../target/flights/pipeline.wasm")
}

fn main() -> Result<(), Failure> {
    horchestra::systemd::launch::run_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // Processes of their own, which the benches start.
        ["up", directory] => return cold_start::up(directory.as_ref()),
        ["idle"] => return idle::child(),
        _ => {}
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|a| name.contains(a.as_str()));
    let mut table = Table::default();
    if wanted("evaluation") {
        evaluation::run(&mut table)?;
    }
    if wanted("reaction") {
        disk::run(&mut table)?;
        reaction::run(&mut table)?;
    }
    if wanted("reconciles") {
        reconciles::run(&mut table)?;
    }
    if wanted("memory") {
        memory::run(&mut table)?;
    }
    if wanted("idle") {
        idle::run(&mut table)?;
    }
    if wanted("start") {
        cold_start::run(&mut table)?;
    }
    println!("{table}");
    Ok(())
}
