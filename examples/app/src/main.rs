//! An embedder: the application's function and its provider as two reconcilers of one program, natively.
//!
//! `cargo run -p example-app -- DIR` serves the Kubernetes API over a store in DIR and reconciles every
//! App and Database that somebody creates there. Without DIR it does so on the cluster of `KUBECONFIG`.

use std::path::PathBuf;
use std::sync::Arc;

use example_app::{App, Database, app, provider};
use horchestra::embedded::{Embedded, EmbeddedOptions};
use horchestra::runtime::{ApplyOptions, ReconcilerOptions, Runtime, RuntimeOptions, TargetFor};
use horchestra::{Kind, Manifest, k8s_openapi, kube, reconciler};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;

type Failure = Box<dyn std::error::Error>;

/// Defines the kinds and runs both reconcilers.
async fn run(runtime: &Runtime) -> Result<(), Failure> {
    let kind = Kind::of::<CustomResourceDefinition>();
    for definition in [App::crd(), Database::crd()] {
        let definition = Manifest::from_resource(&definition)?;
        runtime.target().apply(&kind, &definition, &ApplyOptions::force("example")).await?;
    }
    runtime.register(Arc::new(reconciler(app)), ReconcilerOptions::default()).await;
    runtime.register(Arc::new(reconciler(provider)), ReconcilerOptions::default()).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Some(data) = std::env::args_os().nth(1).map(PathBuf::from) else {
        let runtime = Runtime::new(RuntimeOptions::default());
        runtime.add_target(TargetFor::Everything, Arc::new(kube::connect().await?));
        run(&runtime).await?;
        println!("ready");
        tokio::signal::ctrl_c().await?;
        runtime.shutdown().await;
        return Ok(());
    };
    let listen = "127.0.0.1:0".parse()?;
    let server =
        Embedded::start(EmbeddedOptions { listen, node: false, ..EmbeddedOptions::new(data) }).await?;
    run(server.runtime()).await?;
    println!("ready {} kubeconfig {}", server.url(), server.kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
