//! Flights in WebAssembly text, run on both engines.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use horchestra_flight::contract::*;
use horchestra_wasm::{FlightEngine, LoadError, Wasmi, Wasmtime};

/// Both engines, and the compiling one without its pool.
pub(crate) fn engines() -> Vec<Arc<dyn FlightEngine>> {
    vec![
        Arc::new(Wasmtime::new().unwrap()),
        Arc::new(Wasmtime::on_demand(Default::default()).unwrap()),
        Arc::new(Wasmi::new().unwrap()),
    ]
}

/// Imports, a memory of two pages, `$print`, `$log`, and a bump allocator from 64 KiB on.
pub(crate) const PRELUDE: &str = r#"
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "host" "k8s_lookup" (func $lookup (param i32 i64 i64 i64 i64) (result i64)))
  (import "host" "k8s_rest_mapping" (func $mapping (param i32 i64 i64) (result i64)))
  (memory (export "memory") 2)
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 16) (local.get $at))
    (i32.store (i32.const 20) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 16) (i32.const 1) (i32.const 24))))
  (func $print (param i32 i32) (call $write (i32.const 1) (local.get 0) (local.get 1)))
  (func $log (param i32 i32) (call $write (i32.const 2) (local.get 0) (local.get 1)))
  (func $print_buffer (param i64)
    (call $print (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 32))) (i32.wrap_i64 (local.get 0))))
  (func $str (param $at i64) (param $length i64) (result i64)
    (i64.or (i64.shl (local.get $at) (i64.const 32)) (local.get $length)))
  (func $grow_for (param $end i32)
    (block $enough (loop $again
      (br_if $enough (i32.le_u (local.get $end) (i32.shl (memory.size) (i32.const 16))))
      (drop (memory.grow (i32.const 16)))
      (br $again))))
"#;

/// An allocator as guests export it.
pub(crate) const ALLOCATOR: &str = r#"
  (global $next (mut i32) (i32.const 65536))
  (func (export "malloc") (param $size i32) (result i64)
    (local $at i32)
    (local.set $at (global.get $next))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (call $grow_for (global.get $next))
    (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $size))))
"#;

/// A module of the prelude, more definitions, and the body of `_start`.
pub(crate) fn flight(definitions: &str, start: &str) -> Vec<u8> {
    module(&format!("{PRELUDE}\n{definitions}\n(func (export \"_start\")\n{start}\n)"))
}

/// A module of these fields.
pub(crate) fn module(fields: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {fields}\n)")).unwrap_or_else(|e| panic!("{e}"))
}

/// A host that answers with what it was asked, in a scripted way, and remembers.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) asked: Mutex<Vec<Question>>,
    pub(crate) answer: Mutex<Option<Result<Vec<u8>, Refusal>>>,
}

impl Script {
    pub(crate) fn answering(answer: Result<Vec<u8>, Refusal>) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(Some(answer)), ..Self::default() })
    }
}

impl Host for Script {
    fn ask(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        self.asked.lock().unwrap().push(question);
        self.answer.lock().unwrap().clone().unwrap_or_else(|| Ok(b"{}".to_vec()))
    }
}

pub(crate) fn invocation(stdin: &str) -> Invocation {
    Invocation::new("release", "namespace", stdin.as_bytes().to_vec())
}

/// An invocation that ends soon, for flights that would not.
pub(crate) fn short() -> Invocation {
    let mut short = invocation("");
    short.limits.timeout = Duration::from_millis(60);
    short
}

/// What a flight left behind, without what it cost.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Left {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: i32,
    pub(crate) lookups: u32,
    pub(crate) memory: u64,
}

impl From<Output> for Left {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            exit_code: output.exit_code,
            lookups: output.stats.lookups,
            memory: output.stats.memory,
        }
    }
}

/// Runs on all engines, twice, and gives the one result that they all must have.
pub(crate) fn run_with(module: &[u8], invocation: &Invocation, host: Arc<dyn Host>) -> Result<Left, Fault> {
    let mut results = Vec::new();
    for engine in engines() {
        let flight = engine.load(module).unwrap_or_else(|e| panic!("{}: {e}", engine.name()));
        for _ in 0..2 {
            results
                .push((engine.name().to_owned(), flight.evaluate(invocation, host.clone()).map(Left::from)));
        }
    }
    let (_, first) = results.remove(0);
    for (engine, other) in results {
        assert_eq!(first, other, "{engine} differs from wasmtime");
    }
    first
}

pub(crate) fn run(module: &[u8], invocation: &Invocation) -> Result<Left, Fault> {
    run_with(module, invocation, Arc::new(Script::default()))
}

/// The error that all engines must have for a module.
pub(crate) fn load_error(module: &[u8]) -> LoadError {
    let mut errors: Vec<_> = engines()
        .iter()
        .map(|engine| match engine.load(module) {
            Ok(_) => panic!("{} loads it", engine.name()),
            Err(error) => error,
        })
        .collect();
    let first = errors.remove(0);
    errors.iter().for_each(|other| assert_eq!(first, *other));
    first
}

/// The text and log of a limit that was reached.
pub(crate) fn limit(result: Result<Left, Fault>) -> (Limit, String, String) {
    match result {
        Err(Fault::Limit { limit, text, stderr }) => {
            (limit, text, String::from_utf8_lossy(&stderr).into_owned())
        }
        other => panic!("no limit: {other:?}"),
    }
}

/// The cause and log of a trap.
pub(crate) fn trap(result: Result<Left, Fault>) -> (String, String) {
    match result {
        Err(Fault::Trap { cause, stderr }) => (cause, String::from_utf8_lossy(&stderr).into_owned()),
        other => panic!("no trap: {other:?}"),
    }
}
