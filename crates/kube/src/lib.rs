//! A Kubernetes API server as a [`Target`](horchestra_runtime::Target) of reconcilers: any cluster,
//! or Horchestra's own controller over its network API.

mod connect;
mod discovery;
mod error;
mod lease;
mod listing;
mod path;
mod target;
mod watch;

pub use self::connect::{ConnectError, connect, connect_with};
pub use self::lease::{Leadership, LeaseOptions, Timing};
pub use self::target::KubeTarget;
pub use kube_client;
