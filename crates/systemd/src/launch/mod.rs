//! From a fresh process to a workload: namespaces, mounts, root, user, program, in this order.
//!
//! Between fork and exec nothing safe can be done in the parent's memory, so the parent starts a small program
//! (itself, as a rule) that reads what to become, becomes it, and execs. The image's environment reaches the
//! workload only: no variable of an image is set while a program of the node runs.

mod become_it;
mod mounts;
mod spec;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use spec::{LaunchMount, LaunchRoot, LaunchSpec, Overlay};

/// The first argument of a program that is to be the launcher.
pub(crate) const ASK: &str = "--horchestra-launch";
/// Exit code where the workload could not be started; the reason is in the error file.
const FAILED: i32 = 125;

static READY: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`: turns this process into a workload where it was started for that, and does
/// nothing otherwise. A program that runs a local node must call it before it starts any thread.
pub fn run_if_asked() {
    READY.store(true, Ordering::Relaxed);
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|a| a == ASK) {
        let Some(errors) = args.next() else { std::process::exit(FAILED) };
        std::process::exit(become_it::run(&PathBuf::from(errors)));
    }
}

/// This program as the launcher, where it has called [`run_if_asked`].
#[must_use]
pub fn this_program() -> Option<PathBuf> {
    // The link also leads to the program after its file has been replaced by an upgrade.
    READY.load(Ordering::Relaxed).then(|| PathBuf::from("/proc/self/exe"))
}
