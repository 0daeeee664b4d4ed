//! An embedder: the pipeline's function as a reconciler of a program of its own, natively.
//!
//! `cargo run -p example-pipeline -- DIR` serves the Kubernetes API over a store in DIR and reconciles
//! every Pipeline that somebody creates there.

use std::path::PathBuf;
use std::sync::Arc;

use example_pipeline::{Pipeline, pipeline};
use horchestra::embedded::{Embedded, EmbeddedOptions};
use horchestra::runtime::{ApplyOptions, ReconcilerOptions};
use horchestra::{Kind, Manifest, k8s_openapi, reconciler};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let data: PathBuf = std::env::args_os().nth(1).ok_or("usage: example-pipeline DIR")?.into();
    let listen = "127.0.0.1:0".parse()?;
    let server =
        Embedded::start(EmbeddedOptions { listen, node: false, ..EmbeddedOptions::new(data) }).await?;

    let definition = Manifest::from_resource(&Pipeline::crd())?;
    let kind = Kind::of::<CustomResourceDefinition>();
    server.runtime().target().apply(&kind, &definition, &ApplyOptions::force("example")).await?;
    server.runtime().register(Arc::new(reconciler(pipeline)), ReconcilerOptions::default()).await;

    println!("ready {} kubeconfig {}", server.url(), server.kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
