//! The whole server: store, API, garbage collection, HTTP over TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::auth::{AdminsOnly, Authenticator, Authorizer};
use crate::collector::Collector;
use crate::http::{Handler, Limits, Listener, Metrics, MetricsSource};
use crate::kinds::Kind;
use crate::pki::{Pki, PkiError};
use crate::store::RevisionedStore;
use crate::{Api, ApiError};

/// How a [`Controller`] is started.
pub struct Options {
    /// Where everything is kept.
    pub store: Arc<dyn RevisionedStore>,
    /// Folder of keys and certificates; made if it is not there.
    pub pki: PathBuf,
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Kinds beside the built-in ones; see [`Kind::from_definition`].
    pub kinds: Vec<Kind>,
    /// Validators of writes. More can be added later with [`Api::add_admission`].
    pub admission: Vec<Arc<dyn Admission>>,
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// Bounds of the HTTP server.
    pub limits: Limits,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("pki", &self.pki)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The usual: nothing extra, members of `system:masters` may do everything, others nothing.
    #[must_use]
    pub fn new(store: Arc<dyn RevisionedStore>, pki: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            store,
            pki: pki.into(),
            listen,
            kinds: Vec::new(),
            admission: Vec::new(),
            authorizer: Arc::new(AdminsOnly),
            limits: Limits::default(),
        }
    }
}

/// Why a controller did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Keys or certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The store, or the kinds in it.
    #[error("the store cannot be read: {0}")]
    Store(#[from] ApiError),
    /// The address.
    #[error("cannot listen on {address}: {source}: choose another address, or port 0 for a free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A running API server.
pub struct Controller {
    api: Arc<Api>,
    pki: Pki,
    address: SocketAddr,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Controller {
    /// Starts serving. When this returns, clients are answered.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { address: options.listen, source };
        let socket = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let pki = Pki::open(&options.pki)?;
        let tls = Arc::new(pki.server(address)?);
        let api = Arc::new(Api::new(options.store, options.kinds)?);
        for admission in options.admission {
            api.add_admission(admission);
        }
        api.load().await?;
        let stop = CancellationToken::new();
        let handler = Arc::new(Handler::new(
            api.clone(),
            options.limits,
            address.to_string(),
            Authenticator::new(pki.token()),
            options.authorizer,
            stop.clone(),
        ));
        let metrics = handler.metrics.clone();
        let listener = Listener { socket, tls, handler };
        let tasks =
            vec![tokio::spawn(listener.run()), tokio::spawn(Collector::new(api.clone()).run(stop.clone()))];
        Ok(Self { api, pki, address, metrics, stop, tasks })
    }

    /// The in-process face.
    #[must_use]
    pub fn api(&self) -> Arc<Api> {
        self.api.clone()
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients of this machine find the server.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("https://{address}")
    }

    /// Keys and certificates.
    #[must_use]
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// A kubeconfig for the admin.
    pub fn kubeconfig(&self) -> Result<String, PkiError> {
        self.pki.kubeconfig(&self.url())
    }

    /// Writes [`kubeconfig`](Self::kubeconfig) to a file that only its owner can read.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), PkiError> {
        self.pki.write_kubeconfig(path, &self.url())
    }

    /// Shows the metrics of another part of the program under `/metrics` as well.
    pub fn add_metrics(&self, source: MetricsSource) {
        self.metrics.add(source);
    }

    /// Stops listening, ends watches, and waits for requests to finish, for a while.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
