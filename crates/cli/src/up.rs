//! `horchestra up`: controller, flights and a local node in one process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use horchestra::embedded::{Embedded, EmbeddedOptions, StoreChoice};
use horchestra::systemd::SupervisorChoice;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the API server, the flights and a local node in this process until it is told to stop.
///
/// Prints one line when clients are answered: the server's URL and the kubeconfig for kubectl.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Directory of keys, store, images and logs; made if it is not there
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where objects are kept
    #[arg(long, value_name = "KIND", default_value = "redb")]
    store: Store,
    /// Run no workloads: Jobs and Deployments wait for whoever sets their status
    #[arg(long)]
    no_node: bool,
    /// Who runs the workloads
    #[arg(long, value_name = "WHO", default_value = "auto")]
    supervisor: Supervisor,
    /// Directory of image layouts (named as images are) that the node may run, besides `oci:DIR` references
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
    /// Record every run of a reconciler to this file, for `horchestra replay`
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Store {
    /// In memory; gone when the process ends
    Memory,
    /// In a file below the data directory
    Redb,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Supervisor {
    /// systemd, where it runs this machine and this is root; else processes
    Auto,
    /// systemd: workloads are its services, and go on when this process ends
    Systemd,
    /// This process: workloads are its children, and end with it
    Processes,
}

impl From<Supervisor> for SupervisorChoice {
    fn from(supervisor: Supervisor) -> Self {
        match supervisor {
            Supervisor::Auto => Self::Auto,
            Supervisor::Systemd => Self::Systemd,
            Supervisor::Processes => Self::Processes,
        }
    }
}

impl Up {
    pub(crate) async fn run(self) -> ExitCode {
        // Ready for them before anything is started, so that none is lost.
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            eprintln!("horchestra: cannot listen for signals");
            return ExitCode::FAILURE;
        };
        let options = EmbeddedOptions {
            listen: self.listen,
            store: match self.store {
                Store::Memory => StoreChoice::Memory,
                Store::Redb => StoreChoice::Redb,
            },
            node: !self.no_node,
            supervisor: self.supervisor.into(),
            images: self.images,
            journal: self.journal,
            ..EmbeddedOptions::new(self.data)
        };
        let server = match Embedded::start(options).await {
            Ok(server) => server,
            Err(error) => {
                eprintln!("horchestra: {error}");
                return ExitCode::FAILURE;
            }
        };
        println!("ready {} kubeconfig {}", server.url(), server.kubeconfig().display());
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping");
        server.shutdown().await;
        ExitCode::SUCCESS
    }
}
