//! One step of `cargo xtask test`: a name, a program, a log, and how it ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::root;

/// After this long a step has hung. From nothing, the longest takes less than half of it on two cores.
const LIMIT: Duration = Duration::from_secs(40 * 60);
/// How often a long step says that it still runs, and what it does.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How much of a failed step's log is shown; the file has all of it.
const SHOWN: usize = 60_000;

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// It could not be tried here, and why.
    Skipped(String),
}

/// A step that has ended.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) time: Duration,
}

impl Step {
    /// Runs a program to its end, with what it prints in a log; the log comes back too.
    pub(crate) fn run(name: &'static str, command: &mut Command) -> (Self, String) {
        println!("  …   {name}");
        let started = Instant::now();
        let (outcome, text) = match logged(name, command, started) {
            Ok((true, text)) => (Outcome::Passed, text),
            Ok((false, text)) => (Outcome::Failed, text),
            Err(problem) => (Outcome::Failed, problem),
        };
        if let Outcome::Failed = outcome {
            println!("{}", excerpt(&text));
        }
        (Self::ended(name, outcome, started), text)
    }

    /// A step that is a function; the text of success is shown beside it.
    pub(crate) fn call(name: &'static str, work: impl FnOnce() -> Result<(), String>) -> Self {
        let started = Instant::now();
        let outcome = match work() {
            Ok(()) => Outcome::Passed,
            Err(problem) => {
                println!("{problem}");
                Outcome::Failed
            }
        };
        Self::ended(name, outcome, started)
    }

    /// A step that cannot be tried here.
    pub(crate) fn skipped(name: &'static str, why: String) -> Self {
        Self::ended(name, Outcome::Skipped(why), Instant::now())
    }

    fn ended(name: &'static str, outcome: Outcome, started: Instant) -> Self {
        let step = Self { name, outcome, time: started.elapsed() };
        println!("{}", step.line());
        step
    }

    /// The step as a line of a table.
    pub(crate) fn line(&self) -> String {
        let (mark, why) = match &self.outcome {
            Outcome::Passed => ("ok  ", ""),
            Outcome::Failed => ("FAIL", ""),
            Outcome::Skipped(why) => ("skip", why.as_str()),
        };
        format!("  {mark}  {:<22} {:>7.1} s  {why}", self.name, self.time.as_secs_f64()).trim_end().to_owned()
    }

    /// Whether it may stand in a run that passes.
    pub(crate) fn is_good(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed)
    }
}

fn logged(name: &str, command: &mut Command, started: Instant) -> Result<(bool, String), String> {
    let path = log_path(name)?;
    let problem = |e: std::io::Error| format!("{}: {e}", path.display());
    let log = File::create(&path).map_err(problem)?;
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(problem)?).stderr(log);
    command.env("CARGO_TERM_COLOR", "never").env("TERM", "dumb");
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let status = watched(&mut child, &path, started)?;
    let mut text = String::from_utf8_lossy(&fs::read(&path).map_err(problem)?).into_owned();
    match status {
        Some(status) => Ok((status.success(), text)),
        None => {
            text += &format!("\nstopped after {} s; it hangs", LIMIT.as_secs());
            Ok((false, text))
        }
    }
}

fn log_path(name: &str) -> Result<PathBuf, String> {
    let directory = root().join("target/xtask");
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    Ok(directory.join(name.replace(' ', "-")).with_extension("log"))
}

/// Waits for a program; none if it had to be stopped.
fn watched(child: &mut Child, log: &Path, started: Instant) -> Result<Option<ExitStatus>, String> {
    let mut next = SIGN_OF_LIFE;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Some(status));
        }
        let past = started.elapsed();
        if past > LIMIT {
            kill_tree(child.id());
            child.wait().map_err(|e| e.to_string())?;
            return Ok(None);
        }
        if past > next {
            next += SIGN_OF_LIFE;
            println!("      {:>4.0} s  {}", past.as_secs_f64(), last_line(log));
        }
        thread::sleep(LOOK);
    }
}

/// Ends a process and everything that descends from it, children first.
fn kill_tree(process: u32) {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).for_each(kill_tree);
    // Gone already is as good.
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
}

fn last_line(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let tail = bytes.get(bytes.len().saturating_sub(2000)..).unwrap_or_default();
    let text = String::from_utf8_lossy(tail);
    text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default().chars().take(90).collect()
}

/// What of a log helps: no progress, no tests that passed, and only the end of a long one.
fn excerpt(log: &str) -> String {
    let noise = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        let progress = ["Compiling", "Checking", "Downloading", "Downloaded", "Documenting", "Locking"];
        let passed = word == "test" && line.ends_with("... ok");
        !(passed || progress.contains(&word))
    };
    let mut text = log.lines().filter(noise).collect::<Vec<_>>().join("\n");
    if let Some(mut from) = text.len().checked_sub(SHOWN) {
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text = format!("… (the whole log is in target/xtask)\n{}", text.split_off(from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_no_progress_and_keeps_the_end() {
        let log = "   Compiling a v1\ntest b ... ok\ntest c ... FAILED\nthread 'c' panicked\n";
        assert_eq!(excerpt(log), "test c ... FAILED\nthread 'c' panicked");
        let long = format!("{}\nthe end", "ä".repeat(SHOWN));
        assert!(excerpt(&long).ends_with("the end"));
        assert!(excerpt(&long).len() < SHOWN + 100);
    }
}
