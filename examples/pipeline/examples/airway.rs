//! Prints `airway.yaml`.

use example_pipeline::Pipeline;
use kube_core::CustomResourceExt;

#[path = "../../airway.rs"]
mod airway;

fn main() {
    let airways = [airway::airway(&Pipeline::crd(), "target/flights/pipeline.wasm", &[])];
    print!("{}", airway::manifest("cargo run --quiet --package example-pipeline --example airway", &airways));
}
