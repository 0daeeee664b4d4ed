//! A server in a folder of its own, and ways to ask it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use horchestra_controller::kinds::Endpoint;
use horchestra_controller::rest::{DeleteOptions, WriteOptions};
use horchestra_controller::store::MemoryStore;
use horchestra_controller::{Api, ApiError, Controller, Object, Options};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// For anything that happens by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) controller: Controller,
    folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut options = Options::new(Arc::new(MemoryStore::default()), folder.path().join("pki"), listen);
        change(&mut options);
        let controller = Controller::start(options).await.unwrap();
        controller.write_kubeconfig(&folder.path().join("kubeconfig")).unwrap();
        Self { controller, folder }
    }

    pub(crate) fn api(&self) -> Arc<Api> {
        self.controller.api()
    }

    pub(crate) fn endpoint(&self, api_version: &str, kind: &str) -> Endpoint {
        self.api().kind(api_version, kind).unwrap()
    }

    pub(crate) async fn create(&self, object: Value) -> Result<Object, ApiError> {
        let endpoint =
            self.endpoint(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        Ok(self.api().create(&endpoint, &namespace, object, &by("test")).await?.object)
    }

    /// A shell script, as a program.
    pub(crate) fn script(&self, text: &str) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.path().join("script");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// A kubectl of this server.
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl { config: self.folder.path().join("kubeconfig"), folder: self.folder.path().to_owned() }
    }

    /// One HTTP/1.1 request with the admin's token.
    pub(crate) async fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let token = format!("Bearer {}", self.controller.pki().token());
        let mut all = vec![("Authorization", token.as_str())];
        all.extend_from_slice(headers);
        self.anonymous(method, path, &all, body).await
    }

    /// One HTTP/1.1 request without any identity.
    pub(crate) async fn anonymous(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut stream = self.connect().await;
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        // A server that refuses a body early closes the connection while it is being sent.
        let _ = stream.write_all(body).await;
        let _ = stream.flush().await;
        let mut reply = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut reply)).await.expect("an answer");
        Reply::parse(&reply)
    }

    pub(crate) async fn connect(&self) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        let authority = self.controller.pki().authority().as_bytes();
        roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = tokio::net::TcpStream::connect(self.controller.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunk(body) } else { body.to_owned() };
        Self { code, head: head.to_owned(), body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as a Status, whose code is that of the answer.
    pub(crate) fn status(&self) -> Value {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{self:?}");
        assert_eq!(status["apiVersion"], "v1", "{self:?}");
        assert_eq!(status["code"], self.code, "{self:?}");
        status
    }
}

fn unchunk(mut text: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size.min(rest.len())]);
        text = rest.get(size + 2..).unwrap_or_default();
    }
    out
}

pub(crate) fn by(manager: &str) -> WriteOptions {
    WriteOptions::system(manager)
}

pub(crate) fn deleting() -> DeleteOptions {
    DeleteOptions::system("test")
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Waits until `look` answers something.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The real client.
pub(crate) struct Kubectl {
    config: std::path::PathBuf,
    folder: std::path::PathBuf,
}

impl Kubectl {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .env("KUBECONFIG", &self.config)
            .env("HOME", &self.folder)
            .env("KUBECTL_COMMAND_HEADERS", "true")
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .args(arguments);
        command
    }

    /// Runs; `input` is what `-f -` reads.
    pub(crate) fn try_run(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl is on PATH");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(out) } else { Err(format!("{out}{err}")) }
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> String {
        self.try_run(arguments, input).unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "")
    }

    pub(crate) fn fails(&self, arguments: &[&str], input: &str) -> String {
        match self.try_run(arguments, input) {
            Err(error) => error,
            Ok(out) => panic!("kubectl {arguments:?} succeeded: {out}"),
        }
    }
}
