//! A running `horchestra up`, and kubectl against it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::Machine;
use crate::machine::children;

/// The command, which `cargo build --workspace` puts beside the directory of the test programs.
///
/// # Panics
/// Where it has not.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let path = test.ancestors().nth(2).expect("a target directory").join("horchestra");
    assert!(path.is_file(), "{} is missing; run `cargo build --package horchestra-cli`", path.display());
    path
}

/// How long anything may take to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The root of the checkout.
pub fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}

/// An example flight, which `cargo xtask flights` has built.
///
/// # Panics
/// Where it has not.
pub fn module(name: &str) -> PathBuf {
    let path = root().join("target/flights").join(name).with_extension("wasm");
    assert!(path.is_file(), "{} is missing; run `cargo xtask flights`", path.display());
    path
}

/// The Airways of an example, with the module that was built.
///
/// # Panics
/// Where there is none.
pub fn airway(example: &str) -> String {
    let text = std::fs::read_to_string(root().join("examples").join(example).join("airway.yaml")).unwrap();
    let path = module(example);
    text.replace(&format!("target/flights/{example}.wasm"), &path.display().to_string())
}

/// Asks until there is an answer.
///
/// # Panics
/// When there is none in time; `what` and the last thing seen are in the message.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if started.elapsed() > PATIENCE => panic!("{what} did not happen; last seen: {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A `horchestra up` with its own data directory; it ends with the value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Its process: the child, or the child's child in a machine.
    pid: u32,
    data: PathBuf,
    url: String,
}

impl Server {
    /// Starts one over a directory, on a free port if no other is named, with further arguments.
    ///
    /// # Panics
    /// Where it does not become ready.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.current_dir(root()).args(["up", "--data"]).arg(data);
        Self::run(command, data, arguments)
    }

    /// Starts one in a machine, with its data there under this name.
    ///
    /// # Panics
    /// Where it does not become ready.
    pub fn start_in(machine: &Machine, name: &str, arguments: &[&str]) -> Self {
        let (inside, outside) = machine.path(name);
        let mut command = machine.command(program());
        command.args(["up", "--data"]).arg(inside);
        let mut server = Self::run(command, &outside, arguments);
        server.pid = *children(server.child.id()).first().expect("its process in the machine");
        server
    }

    fn run(mut command: Command, data: &Path, arguments: &[&str]) -> Self {
        let log = std::fs::File::create(data.with_extension("log")).expect("a log file");
        let mut child = command
            .args(if arguments.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("horchestra starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its stdout");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["ready", url, "kubeconfig", _] = words.as_slice() else {
            let log = std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
            panic!("not ready: {line:?}\n{log}");
        };
        let url = (*url).to_owned();
        Self { pid: child.id(), child, data: data.to_owned(), url }
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    /// Ends it as an operator would, and says whether it ended well.
    pub fn stop(mut self) -> bool {
        self.signal("TERM") && self.child.wait().is_ok_and(|s| s.success())
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.signal("KILL");
        let _ = self.child.wait();
    }

    fn signal(&mut self, name: &str) -> bool {
        // Its number may be somebody else's once it is gone.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return false;
        }
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.pid.to_string()).status();
        kill.is_ok_and(|status| status.success())
    }

    /// Runs kubectl, with a manifest on stdin if there is one.
    ///
    /// # Panics
    /// Where kubectl cannot be run at all.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments)
            .env("HOME", &self.data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl is on PATH");
        child.stdin.take().expect("its stdin").write_all(stdin.as_bytes()).expect("a manifest");
        child.wait_with_output().expect("its output")
    }

    /// Runs kubectl and gives back what it printed.
    ///
    /// # Errors
    /// What it said where it failed.
    pub fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.kubectl(arguments, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            Ok(text)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Applies a manifest.
    ///
    /// # Panics
    /// Where it is refused.
    pub fn apply(&self, manifest: &str) {
        let output = self.kubectl(&["apply", "-f", "-"], manifest);
        assert!(output.status.success(), "refused: {}\n{manifest}", String::from_utf8_lossy(&output.stderr));
    }

    /// Prints what there is and what the server has said, for whoever reads why a test failed.
    fn tell(&self) {
        for kinds in ["airways,pipelines,jobs", "events"] {
            println!("{}", self.ask(&["get", kinds, "-A", "-o", "yaml"]).unwrap_or_else(|e| e));
        }
        println!("{}", std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default());
    }

    /// Waits until a question to kubectl has this answer.
    pub fn expect(&self, arguments: &[&str], answer: &str) {
        wait_for(&format!("{arguments:?} answers {answer:?}"), || match self.ask(arguments) {
            Ok(text) if text == answer => Ok(()),
            Ok(text) | Err(text) => Err(text),
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
        self.signal("KILL");
        let _ = self.child.wait();
    }
}
