//! The examples as programs of their own: the same functions, natively.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use horchestra_tests::{program, root, wait_for};

struct Embedder {
    child: Child,
    kubeconfig: PathBuf,
}

impl Embedder {
    fn start(name: &str, directory: &Path) -> Self {
        let path = program().with_file_name(name);
        let mut child = Command::new(&path).arg(directory).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready https://"), "{line:?}");
        Self { child, kubeconfig: directory.join("kubeconfig") }
    }

    fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        let output =
            Command::new("kubectl").arg("--kubeconfig").arg(&self.kubeconfig).args(words).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn apply(&self, example: &str) {
        let path = root().join("examples").join(example).join("instance.yaml").display().to_string();
        wait_for("its kind is served", || self.kubectl(&["apply", "-f", &path]));
    }

    fn expect(&self, words: &[&str], answer: &str) {
        wait_for(answer, || match self.kubectl(words)? {
            text if text == answer => Ok(()),
            text => Err(text),
        });
    }
}

impl Drop for Embedder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_pipeline_is_an_operator() {
    let dir = tempfile::tempdir().unwrap();
    let operator = Embedder::start("example-pipeline", dir.path());
    operator.apply("pipeline");
    operator
        .expect(&["get", "pipeline", "hello", "-o", "jsonpath={.status.message}"], "running job hello-one");
}

#[test]
fn the_app_and_its_provider_are_one_operator() {
    let dir = tempfile::tempdir().unwrap();
    let operator = Embedder::start("example-app", dir.path());
    operator.apply("app");
    operator.expect(&["get", "secret", "shop-connection", "-o", "jsonpath={.type}"], "Opaque");
    operator.expect(&["get", "app", "shop", "-o", "jsonpath={.status.message}"], "deploying");
    operator.kubectl(&["delete", "app", "shop", "--timeout=30s"]).unwrap();
    operator.expect(&["get", "deployments,databases,secrets", "-o", "name"], "");
}
