//! How an embedded server is started.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreChoice {
    /// In a file below the data directory; every acknowledged write survives a crash.
    #[default]
    Redb,
    /// In memory; everything is gone when the process ends.
    Memory,
}

/// How an embedded server is started.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The directory of keys, store, images and logs; made if it is not there, for its owner alone.
    pub data: PathBuf,
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where objects are kept.
    pub store: StoreChoice,
    /// Whether this process also runs workloads (with the feature `systemd`). Without a node Jobs
    /// and Deployments wait for whoever sets their status.
    pub node: bool,
    /// Who runs the workloads.
    #[cfg(feature = "systemd")]
    pub supervisor: horchestra_systemd::SupervisorChoice,
    /// A directory with image layouts that the node may run, besides `oci:` references.
    pub images: Option<PathBuf>,
    /// Where every run of a reconciler is recorded, if anywhere.
    pub journal: Option<PathBuf>,
}

impl EmbeddedOptions {
    /// The usual: on loopback at port 6443, on disk, with a node.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)),
            store: StoreChoice::default(),
            node: true,
            #[cfg(feature = "systemd")]
            supervisor: horchestra_systemd::SupervisorChoice::default(),
            images: None,
            journal: None,
        }
    }
}
