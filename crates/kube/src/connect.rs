//! Finding the cluster.

use std::path::Path;

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};

use crate::KubeTarget;
use crate::error::full_text;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Neither a kubeconfig nor a pod's service account.
    #[error("no cluster is configured: {0}; set KUBECONFIG, or run in a pod with a service account")]
    NotConfigured(String),
    /// A kubeconfig that cannot be used.
    #[error("kubeconfig {path}: {reason}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No client can be made of the configuration.
    #[error("cannot connect to the cluster: {0}")]
    Client(String),
}

/// The cluster of `KUBECONFIG`, of `~/.kube/config`, or of the pod that this runs in.
///
/// # Errors
/// Where there is none. A server that does not answer is found by the first request.
pub async fn connect() -> Result<KubeTarget, ConnectError> {
    let config = Config::infer().await.map_err(|e| ConnectError::NotConfigured(full_text(&e)))?;
    of(config)
}

/// The cluster of a kubeconfig, by its current context or another one.
///
/// # Errors
/// A file that cannot be read or used.
pub async fn connect_with(path: &Path, context: Option<&str>) -> Result<KubeTarget, ConnectError> {
    let wrong = |reason: String| ConnectError::Kubeconfig { path: path.display().to_string(), reason };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|e| wrong(full_text(&e)))?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| wrong(full_text(&e)))?;
    of(config)
}

fn of(config: Config) -> Result<KubeTarget, ConnectError> {
    let client = Client::try_from(config).map_err(|e| ConnectError::Client(full_text(&e)))?;
    Ok(KubeTarget::new(client))
}
