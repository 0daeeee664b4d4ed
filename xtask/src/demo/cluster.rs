//! A running `horchestra up`, and kubectl against it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::Interrupted;
use crate::run::root;

/// How long it may take to become ready, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Ended, in order, when it is dropped.
pub(super) struct Cluster {
    child: Child,
    url: String,
    data: PathBuf,
    log: PathBuf,
}

impl Cluster {
    /// Starts it in a fresh directory, and waits until it is ready.
    pub(super) fn start(program: &Path, directory: &Path, interrupted: &Interrupted) -> Result<Self, String> {
        let data = directory.join("data");
        let log = directory.join("horchestra.log");
        let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new(program);
        // The Airways of the examples name their modules relative to the checkout.
        command.current_dir(root()).args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        command.arg("--images").arg(directory.join("images"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        let stdout = child.stdout.take();
        let mut cluster = Self { child, url: String::new(), data, log };
        let (sender, line) = mpsc::channel();
        thread::spawn(move || {
            let first = stdout.and_then(|stdout| BufReader::new(stdout).lines().next());
            // Nobody listens any more once it is too late.
            let _ = sender.send(first.and_then(Result::ok));
        });
        let started = Instant::now();
        loop {
            interrupted.check()?;
            match line.recv_timeout(LOOK) {
                Ok(Some(line)) => {
                    cluster.url = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
                    return Ok(cluster);
                }
                Err(mpsc::RecvTimeoutError::Timeout) if started.elapsed() < PATIENCE => {}
                _ => return Err(format!("horchestra up did not become ready:\n{}", cluster.log())),
            }
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.data.join("kubeconfig").display().to_string()
    }

    /// What it logged.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still runs.
    pub(super) fn check(&self) -> Result<(), String> {
        let path = format!("/proc/{}/stat", self.child.id());
        let state = fs::read_to_string(path).unwrap_or_default();
        // A process that has ended and was not waited for is a zombie.
        if state.is_empty() || state.contains(") Z ") {
            return Err(format!("horchestra up has ended:\n{}", self.log()));
        }
        Ok(())
    }

    /// A kubectl that talks to it and leaves nothing at home.
    pub(super) fn kubectl_command(&self) -> Command {
        let mut command = Command::new("kubectl");
        command.current_dir(root()).env("KUBECONFIG", self.kubeconfig()).env("HOME", &self.data);
        command
    }

    /// What kubectl answers.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.run(arguments, "")
    }

    pub(super) fn apply_file(&self, path: &str) -> Result<(), String> {
        println!("  kubectl apply -f {path}");
        self.run(&["apply", "-f", path], "").map(drop)
    }

    pub(super) fn apply(&self, manifest: &str) -> Result<(), String> {
        println!("  kubectl apply -f -");
        manifest.lines().for_each(|line| println!("      {line}"));
        self.run(&["apply", "-f", "-"], manifest).map(drop)
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Result<String, String> {
        let problem = |e: std::io::Error| format!("kubectl: {e}");
        let mut command = self.kubectl_command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(problem)?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(stdin.as_bytes()).map_err(problem)?;
        }
        let output = child.wait_with_output().map_err(problem)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("kubectl {}: {}\n{}", arguments.join(" "), said.trim(), self.log()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        // If it has ended by itself there is nobody to tell.
        let _ = Command::new("kill").arg(&id).stderr(Stdio::null()).status();
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
