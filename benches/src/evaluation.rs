//! One evaluation of the Pipeline flight, warm: as a module, and the same function natively between
//! the decoding of its input and the encoding of its answer.

use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use horchestra_flight::contract::{Evaluate, Host, Invocation};
use horchestra_flight::testing::FakeCluster;
use horchestra_flight::{NativeFlight, reconciler};
use horchestra_wasm::{FlightEngine, Wasmtime};

use crate::table::{Table, us};
use crate::{Failure, pipeline};

const INSTANCE: &[u8] = br#"{"apiVersion":"examples.com/v1","kind":"Pipeline","metadata":{"name":"hello","namespace":"default",
    "uid":"00000000-0000-4000-8000-000000000000","resourceVersion":"1","generation":1},"spec":{"image":"busybox"}}"#;

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let module = std::fs::read(pipeline())
        .map_err(|e| format!("{}: {e}; run `cargo xtask flights`", pipeline().display()))?;
    let flight = Wasmtime::new()?.load(&module)?;
    let native: Arc<dyn Evaluate> = Arc::new(NativeFlight(reconciler(example_pipeline::pipeline)));
    let directory = tempfile::tempdir()?;
    let mut criterion = Criterion::default()
        .output_directory(directory.path())
        .measurement_time(Duration::from_secs(4))
        .without_plots();
    let wasm = measure(&mut criterion, directory.path(), "wasmtime", &flight)?;
    let native = measure(&mut criterion, directory.path(), "native", &native)?;
    table.row("evaluation, wasmtime, p50", us(wasm), "40 us", format!("natively {}", us(native)));
    let ratio = wasm.as_secs_f64() / native.as_secs_f64();
    table.row("  ratio to natively with JSON", format!("{ratio:.2}"), "2.5", String::new());
    Ok(())
}

/// The median of a call.
fn measure(
    criterion: &mut Criterion,
    directory: &std::path::Path,
    name: &str,
    flight: &Arc<dyn Evaluate>,
) -> Result<Duration, Failure> {
    let host: Arc<dyn Host> = Arc::new(FakeCluster::new().host("default"));
    let invocation = Invocation::new("hello", "default", INSTANCE.to_vec());
    let output = flight.evaluate(&invocation, host.clone())?;
    if output.exit_code != 0 || !String::from_utf8_lossy(&output.stdout).contains("hello-one") {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    criterion.bench_function(name, |b| b.iter(|| flight.evaluate(&invocation, host.clone())));
    let path = directory.join(name).join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let nanos = estimates["median"]["point_estimate"].as_f64().ok_or("criterion gave no median")?;
    Ok(Duration::from_nanos(nanos as u64))
}
