//! A hundred thousand resources that are as they should be.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use horchestra::runtime::{ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
use horchestra::{Cluster, DesiredState, reconciler};

use crate::Failure;
use crate::source::Things;
use crate::table::Table;
use crate::thing::Thing;

const COUNT: usize = 100_000;
static RUNS: AtomicUsize = AtomicUsize::new(0);

async fn idle(_: &Thing, _: &Cluster) -> horchestra::Result<DesiredState> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    Ok(DesiredState::new().status(serde_json::json!({"message": "everything is as it should be"})))
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// In a process of its own: reconciles all of them once, and says what it holds then.
pub fn child() -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let runtime = Runtime::new(RuntimeOptions::default());
        runtime.add_target(TargetFor::Everything, Arc::new(Things(COUNT)));
        runtime.register(Arc::new(reconciler(idle)), ReconcilerOptions::default()).await;
        while RUNS.load(Ordering::Relaxed) < COUNT {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        println!("{} {}", resident(), crate::allocated::bytes() >> 20);
    });
    Ok(())
}

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let output = Command::new(std::env::current_exe()?).arg("idle").output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let (Some(resident), Some(held)) = (words.next(), words.next()) else {
        return Err(format!(
            "the process with idle instances failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    };
    table.row(
        "100,000 idle instances, resident memory",
        format!("{resident} MB"),
        "400 MB",
        format!("allocated {held} MB"),
    );
    Ok(())
}
