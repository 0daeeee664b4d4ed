//! What the author of a flight uses: the contract, typed reads, `main!` and a test harness.
//!
//! A flight is an ordinary `async fn` over a resource and what can be read of the cluster:
//!
//! ```
//! use horchestra_flight::k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use horchestra_flight::{Cluster, DesiredState, Result};
//!
//! /// Says in a ConfigMap's status whether the Secret of its name is there.
//! async fn watcher(map: &ConfigMap, cluster: &Cluster) -> Result<DesiredState> {
//!     let name = map.metadata.name.as_deref().unwrap_or_default();
//!     match cluster.get::<Secret>(name).await? {
//!         Some(_) => Ok(DesiredState::new().status(serde_json::json!({"message": "here"}))),
//!         None => Ok(DesiredState::new().waiting_for(format!("Secret {name}"))),
//!     }
//! }
//! # use horchestra_flight::testing::FakeCluster;
//! # let mut map = ConfigMap::default();
//! # map.metadata.name = Some("a".into());
//! let answer = FakeCluster::new().run_blocking(watcher, &map)?;
//! answer.assert_reads::<Secret>("a");
//! answer.assert_waits_for("Secret a");
//! # Ok::<(), horchestra_flight::Error>(())
//! ```
//!
//! `horchestra_flight::main!(watcher);` makes a WebAssembly program of it, for
//! `wasm32-unknown-unknown` and `wasm32-wasip1`; natively it expands to nothing.

pub mod contract;
mod document;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod entry;
#[cfg(target_family = "wasm")]
pub mod guest;
mod host;
pub mod lookup;
mod macros;
pub mod output;
mod program;
mod source;
pub mod testing;
#[cfg(feature = "web")]
pub mod web;

pub use horchestra_core::{
    Answer, Cluster, Condition, DesiredState, Error, Kind, Manifest, Object, ObjectRef, READY, Read, ReadSet,
    Reconciler, Resource, Result, async_trait, k8s_openapi, kube_core, readiness, reconciler,
};

pub use self::document::{MAX_BYTES, MAX_DEPTH, MAX_DOCUMENTS, document, documents};
pub use self::host::ClusterHost;
#[doc(hidden)]
pub use self::macros::log_line;
pub use self::program::{NativeFlight, Program};
pub use self::source::HostSource;
#[cfg(all(feature = "web", target_family = "wasm"))]
#[doc(hidden)]
pub use wasm_bindgen;
