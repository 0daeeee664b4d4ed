//! Prints `airway.yaml`.

use example_app::{App, Database};
use kube_core::CustomResourceExt;

#[path = "../../airway.rs"]
mod airway;

fn main() {
    let module = "target/flights/app.wasm";
    // The provider is for the example; in earnest databases have an operator of their own.
    let airways =
        [airway::airway(&App::crd(), module, &["Secret"]), airway::airway(&Database::crd(), module, &[])];
    print!("{}", airway::manifest("cargo run --quiet --package example-app --example airway", &airways));
}
