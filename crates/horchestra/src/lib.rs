//! Write a reconciler once: run it natively, or as a wasm flight, on Kubernetes or plain Linux.
//!
//! A reconciler is one function: given a resource and what can be seen of the world, it says what
//! should exist right now. It is called again whenever something it looked at changes.
//!
//! - [`Cluster`] is what it sees, [`DesiredState`] what it answers, [`reconciler`] makes one of an
//!   `async fn`.
//! - [`runtime::Runtime`] drives reconcilers over a [`runtime::Target`].
//! - With the feature `kube`, `kube::connect` gives the target that is any Kubernetes cluster.
//! - With the feature `controller`, [`embedded`] is a whole API server in this process, for a
//!   program that brings its own; `flights` and `systemd` add flights and a local node to it.

pub use horchestra_core::*;

/// Drives reconcilers: [`Runtime`](runtime::Runtime), its options, targets, metrics, journals.
pub mod runtime {
    pub use horchestra_runtime::*;
}

/// The API server and its store.
#[cfg(feature = "controller")]
pub mod controller {
    pub use horchestra_controller::*;
}

/// A Kubernetes API server as a target of reconcilers.
#[cfg(feature = "kube")]
pub mod kube {
    pub use horchestra_kube::*;
}

/// Flights as reconcilers.
#[cfg(feature = "flights")]
pub mod atc {
    pub use horchestra_atc::*;
}

/// A Linux node.
#[cfg(feature = "systemd")]
pub mod systemd {
    pub use horchestra_systemd::*;
}

/// Types that users write.
#[cfg(any(feature = "controller", feature = "flights", feature = "systemd"))]
pub mod api {
    pub use horchestra_api::*;
}

#[cfg(feature = "controller")]
pub mod embedded;
