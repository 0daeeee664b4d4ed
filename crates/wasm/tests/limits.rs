//! Each limit has an error of its own that says how to raise it, on all engines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use horchestra_flight::contract::*;
use horchestra_wasm::{EngineOptions, FlightEngine, Wasmtime};

const LOGGED: &str = r#"(data (i32.const 900) "log line")"#;
const LOG: &str = "(call $log (i32.const 900) (i32.const 8))";

fn timed_out(module: &[u8]) {
    for engine in engines() {
        let flight = engine.load(module).unwrap();
        let begun = Instant::now();
        let fault = flight.evaluate(&short(), Arc::new(Script::default())).unwrap_err();
        let took = begun.elapsed();
        let Fault::Limit { limit: Limit::Timeout, text, stderr } = fault else {
            panic!("{}: {fault:?}", engine.name())
        };
        assert!(
            text.starts_with(
                "module closed with context deadline exceeded: execution timeout (60ms) exceeded; raise it"
            ),
            "{text}"
        );
        assert_eq!(stderr, b"log line", "{}", engine.name());
        assert!(took >= Duration::from_millis(60), "{} too early: {took:?}", engine.name());
        // Generous: the machine may be busy. An endless loop would take for ever.
        assert!(took < Duration::from_secs(5), "{}: {took:?}", engine.name());
    }
}

#[test]
fn an_endless_loop_in_the_program() {
    timed_out(&flight(LOGGED, &format!("{LOG} (loop (br 0))")));
}

#[test]
fn an_endless_loop_in_the_start_function() {
    timed_out(&module(&format!(
        r#"{PRELUDE} {LOGGED} (start $begin) (func $begin {LOG} (loop (br 0))) (func (export "_start"))"#
    )));
}

#[test]
fn an_endless_loop_of_host_calls() {
    let lookups = r#"(loop (drop (call $lookup (i32.const 480) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))) (br 0))"#;
    let poll = r#"
      (i64.store (i32.const 1048) (i64.const -1))
      (loop (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 3000))) (br 0))"#;
    let read = r#"(loop (drop (call $fd_read (i32.const 0) (i32.const 1024) (i32.const 1) (i32.const 3000))) (br 0))"#;
    timed_out(&flight(LOGGED, &format!("{LOG} {poll}")));
    timed_out(&flight(LOGGED, &format!("{LOG} {read}")));
    let mut forever = short();
    forever.limits.lookups = u32::MAX;
    let result = run(&flight(&format!("{LOGGED}{ALLOCATOR}"), &format!("{LOG} {lookups}")), &forever);
    // Either the clock or, since each answer stays allocated, the memory ends it; never the host.
    let (limit, _, log) = limit(result);
    assert_eq!((limit, log.as_str()), (Limit::Timeout, "log line"));
}

#[test]
fn an_endless_loop_in_the_allocator() {
    let malloc = r#"(func (export "malloc") (param i32) (result i64) (loop (br 0)) (unreachable))"#;
    let lookup =
        r#"(drop (call $lookup (i32.const 480) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))"#;
    timed_out(&flight(&format!("{LOGGED}{malloc}"), &format!("{LOG} {lookup}")));
}

/// Much work in one host call: random numbers for all of a large memory, again and again.
#[test]
fn host_functions_look_at_the_clock_themselves() {
    let body = format!(
        "{LOG} (drop (memory.grow (i32.const 3000))) (loop (drop (call $random (i32.const 65536) (i32.const 190000000))) (br 0))"
    );
    timed_out(&flight(LOGGED, &body));
}

/// A cheap instruction that does much: both engines must still come back.
#[test]
fn bulk_memory_does_not_outrun_the_clock() {
    let body = format!(
        "{LOG} (drop (memory.grow (i32.const 3000)))
         (loop (memory.fill (i32.const 65536) (i32.const 1) (i32.const 190000000)) (br 0))"
    );
    timed_out(&flight(LOGGED, &body));
}

#[test]
fn no_time_at_all_and_all_the_time_there_is() {
    let mut none = invocation("");
    none.limits.timeout = Duration::ZERO;
    let (which, text, _) = limit(run(&flight("", ""), &none));
    assert_eq!(which, Limit::Timeout);
    assert!(text.contains("(0s)"), "{text}");
    let mut all = invocation("");
    all.limits.timeout = Duration::MAX;
    run(&flight("", ""), &all).unwrap();
}

/// Waits for its turn within its own time.
#[test]
fn more_evaluations_than_the_pool_has_memories() {
    let engine = Wasmtime::with(EngineOptions { concurrency: 1, ..Default::default() }).unwrap();
    let busy = engine.load(&flight("", "(loop (br 0))")).unwrap();
    let quick = engine.load(&flight("", "")).unwrap();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| busy.evaluate(&short(), Arc::new(NoCluster)).unwrap_err()))
            .collect();
        for _ in 0..20 {
            quick.evaluate(&invocation(""), Arc::new(NoCluster)).unwrap();
        }
        for handle in handles {
            assert!(matches!(handle.join().unwrap(), Fault::Limit { limit: Limit::Timeout, .. }));
        }
    });
}

fn memory_of(mib: u64) -> Invocation {
    let mut invocation = invocation("");
    invocation.limits.memory = mib << 20;
    invocation
}

#[test]
fn memory_growth_is_refused_and_named_as_the_cause_of_what_follows() {
    // Grow by 1 MiB until it fails, then give up as allocators do.
    let grow = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))";
    let (which, text, log) =
        limit(run(&flight(LOGGED, &format!("{LOG} {grow} (unreachable)")), &memory_of(10)));
    assert_eq!((which, log.as_str()), (Limit::Memory, "log line"));
    assert!(
        text.contains("out of memory") && text.contains("10 MiB") && text.contains("maxMemoryMib"),
        "{text}"
    );

    // One that copes has no error, and what it has is within the limit.
    let left = run(&flight("", grow), &memory_of(10)).unwrap();
    assert!(left.memory <= 10 << 20 && left.memory > 9 << 20, "{}", left.memory);

    // One that exits by itself is told on its log.
    let left = run(&flight("", &format!("{grow} (call $exit (i32.const 2))")), &memory_of(10)).unwrap();
    assert_eq!(left.exit_code, 2);
    assert!(left.stderr.contains("limit of 10 MiB"), "{}", left.stderr);
}

#[test]
fn a_trap_after_enough_memory_is_only_a_trap() {
    let (cause, _) =
        trap(run(&flight("", "(drop (memory.grow (i32.const 16))) (unreachable)"), &memory_of(10)));
    assert!(cause.contains("unreachable"), "{cause}");
}

#[test]
fn a_module_that_starts_with_more_memory_than_allowed() {
    let module = module(r#"(memory (export "memory") 1000) (func (export "_start"))"#);
    let (which, text, _) = limit(run(&module, &memory_of(10)));
    assert_eq!(which, Limit::Memory);
    assert!(text.contains("10 MiB"), "{text}");
    run(&module, &memory_of(100)).unwrap();
}

#[test]
fn all_the_memory_that_wasm_has() {
    let mut all = invocation("");
    all.limits.memory = 4 << 30;
    let body = "(if (i32.eq (memory.grow (i32.const 32768)) (i32.const -1)) (then (unreachable)))
        (memory.copy (i32.const 0x80000004) (i32.const 0) (i32.const 8)) (call $print (i32.const 0x80000000) (i32.const 8))";
    run(&flight("", body), &all).unwrap();
}

#[test]
fn output_up_to_the_limit_and_not_a_byte_more() {
    let mut small = invocation("");
    small.limits.stdout = 24;
    let print = "(call $print (i32.const 900) (i32.const 8))";
    let left = run(&flight(LOGGED, &print.repeat(3)), &small).unwrap();
    assert_eq!(left.stdout, "log line".repeat(3));
    let flood = flight(LOGGED, &format!("{LOG} (loop {print} (br 0))"));
    let (which, text, log) = limit(run(&flood, &small));
    assert_eq!((which, log.as_str()), (Limit::Stdout, "log line"));
    assert!(text.contains("24 bytes") && text.contains("--max-stdout"), "{text}");
    let flood = flight("", "(loop (call $print (i32.const 0) (i32.const 65536)) (br 0))");
    let (which, text, _) = limit(run(&flood, &invocation("")));
    assert_eq!(which, Limit::Stdout);
    assert!(text.contains("16 MiB"), "{text}");
}

#[test]
fn a_flood_on_the_log_is_cut_with_a_note_and_does_no_harm() {
    let mut small = invocation("");
    small.limits.stderr = 20;
    let left = run(&flight(LOGGED, &LOG.repeat(5)), &small).unwrap();
    assert!(
        left.stderr.starts_with("log linelog linelog \n[the log ends here: 20 more bytes"),
        "{}",
        left.stderr
    );
    let once = "(call $print (i32.const 900) (i32.const 8))";
    let body = format!(
        "(local $n i32) (loop {LOG} (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 100000)))) {once}"
    );
    let left = run(&flight(LOGGED, &body), &invocation("")).unwrap();
    assert_eq!(left.stdout, "log line");
    assert!(left.stderr.len() < (256 << 10) + 200 && left.stderr.contains("limit is 256 KiB"));
}

#[test]
fn ten_thousand_lookups_and_not_one_more() {
    let body = |times: u32| {
        format!(
            r#"(local $n i32)
            (loop $again
              (drop (call $lookup (i32.const 480) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
              (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const {times}))))"#
        )
    };
    assert_eq!(run(&flight(ALLOCATOR, &body(10_000)), &invocation("")).unwrap().lookups, 10_000);
    let (which, text, _) = limit(run(&flight(ALLOCATOR, &body(10_001)), &invocation("")));
    assert_eq!(which, Limit::Lookups);
    assert!(text.contains("10000 times") && text.contains("--max-lookups"), "{text}");
}
