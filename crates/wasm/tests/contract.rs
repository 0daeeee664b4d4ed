//! What a well-behaved flight sees, the same on all engines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use horchestra_flight::contract::*;

const ECHO: &str = r#"
  (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 5))
  (i32.store (i32.const 8) (i32.const 2048)) (i32.store (i32.const 12) (i32.const 1000))
  (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 28)))
  (call $print (i32.const 1024) (i32.const 5))
  (call $print (i32.const 2048) (i32.sub (i32.load (i32.const 28)) (i32.const 5)))
  (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 28)))
  (i32.store8 (i32.const 40) (i32.add (i32.const 48) (i32.load (i32.const 28))))
  (call $log (i32.const 40) (i32.const 1))"#;

#[test]
fn stdin_is_read_to_its_end_and_stdout_and_stderr_are_kept_apart() {
    let left = run(&flight("", ECHO), &invocation("hello, world")).unwrap();
    assert_eq!((left.stdout.as_str(), left.stderr.as_str(), left.exit_code), ("hello, world", "0", 0));
    assert_eq!(left.memory, 2 << 16);
}

#[test]
fn arguments_and_environment_are_those_of_the_contract() {
    let body = r#"
      (drop (call $args_sizes_get (i32.const 100) (i32.const 104)))
      (drop (call $args_get (i32.const 200) (i32.const 300)))
      (call $print (i32.const 300) (i32.load (i32.const 104)))
      (drop (call $environ_sizes_get (i32.const 100) (i32.const 104)))
      (drop (call $environ_get (i32.const 200) (i32.const 1024)))
      (call $print (i32.load (i32.const 204)) (i32.sub (i32.load (i32.const 104)) (i32.sub (i32.load (i32.const 204)) (i32.load (i32.const 200)))))"#;
    let mut invocation = invocation("");
    invocation.args.push("second".into());
    let left = run(&flight("", body), &invocation).unwrap();
    let version = format!("YOKE_VERSION=v{}\0", env!("CARGO_PKG_VERSION"));
    // The second entry on is printed, by the pointer in the table.
    assert_eq!(
        left.stdout,
        format!("release\0second\0YOKE_NAMESPACE=namespace\0NAMESPACE=namespace\0{version}")
    );
}

#[test]
fn exit_codes_come_through_and_nothing_runs_after_exit() {
    for code in [0, 1, 80, -1, 255, i32::MAX] {
        let body = format!(
            r#"(i32.store (i32.const 40) (i32.const 0x64636261)) (call $print (i32.const 40) (i32.const 4))
               (call $exit (i32.const {code})) (call $print (i32.const 40) (i32.const 4)) (unreachable)"#
        );
        let left = run(&flight("", &body), &invocation("")).unwrap();
        assert_eq!((left.exit_code, left.stdout.as_str()), (code, "abcd"));
    }
}

const TEXTS: &str = r#"(data (i32.const 512) "namesecretsdefaultSecretv1apps/v1Deployment")"#;
/// Looks `name` up and prints the state as a digit and the answer.
const LOOKUP: &str = r#"
  (local $answer i64)
  (i32.store (i32.const 480) (i32.const 0))
  (local.set $answer (call $lookup (i32.const 480)
    (call $str (i64.const 512) (i64.const 4)) (call $str (i64.const 523) (i64.const 7))
    (call $str (i64.const 530) (i64.const 6)) (call $str (i64.const 536) (i64.const 2))))
  (i32.store8 (i32.const 484) (i32.add (i32.const 48) (i32.load (i32.const 480))))
  (call $print (i32.const 484) (i32.const 1))
  (call $print_buffer (local.get $answer))"#;

#[test]
fn a_lookup_asks_and_answers_through_the_guests_memory() {
    let host = Script::answering(Ok(br#"{"kind":"Secret"}"#.to_vec()));
    let left =
        run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), LOOKUP), &invocation(""), host.clone()).unwrap();
    assert_eq!((left.stdout.as_str(), left.lookups), (r#"0{"kind":"Secret"}"#, 1));
    let question = Question::Lookup {
        name: "name".into(),
        namespace: "default".into(),
        kind: "Secret".into(),
        api_version: "v1".into(),
    };
    assert!(host.asked.lock().unwrap().iter().all(|asked| *asked == question));
}

/// The numbers of the states are those of Yoke's contract.
#[test]
fn refusals_reach_the_guest_as_state_and_text() {
    for (state, digit) in [
        (State::FeatureNotGranted, '1'),
        (State::Error, '2'),
        (State::NotFound, '3'),
        (State::Unauthenticated, '4'),
        (State::Forbidden, '5'),
    ] {
        let host = Script::answering(Err(Refusal::State(state, "why".into())));
        let left = run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), LOOKUP), &invocation(""), host).unwrap();
        assert_eq!(left.stdout, format!("{digit}why"));
    }
}

#[test]
fn the_state_is_left_alone_when_there_is_an_answer() {
    let body = LOOKUP
        .replace("(i32.store (i32.const 480) (i32.const 0))", "(i32.store (i32.const 480) (i32.const 7))");
    let host = Script::answering(Ok(b"x".to_vec()));
    assert_eq!(
        run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), &body), &invocation(""), host).unwrap().stdout,
        "7x"
    );
}

#[test]
fn an_answer_larger_than_the_memory_makes_the_guest_grow_it() {
    let big = "x".repeat(3 << 20);
    let host = Script::answering(Ok(big.clone().into_bytes()));
    let left = run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), LOOKUP), &invocation(""), host).unwrap();
    assert!(left.stdout == format!("0{big}"));
}

#[test]
fn the_alias_of_malloc_serves_where_libc_owns_the_name() {
    let alias = ALLOCATOR.replace("\"malloc\"", "\"horchestra_malloc\"");
    let libc = r#"(func (export "malloc") (param i32) (result i32) (unreachable))"#;
    let host = Script::answering(Ok(b"x".to_vec()));
    let left = run_with(&flight(&format!("{TEXTS}{alias}{libc}"), LOOKUP), &invocation(""), host).unwrap();
    assert_eq!(left.stdout, "0x");
}

#[test]
fn rest_mappings_are_asked_with_group_and_kind() {
    let body = r#"(call $print_buffer (call $mapping (i32.const 480)
        (call $str (i64.const 538) (i64.const 7)) (call $str (i64.const 545) (i64.const 10))))"#;
    let host = Script::answering(Ok(b"answer".to_vec()));
    let left =
        run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), body), &invocation(""), host.clone()).unwrap();
    assert_eq!(left.stdout, "answer");
    let question =
        Question::RestMapping { group_or_api_version: "apps/v1".into(), kind: "Deployment".into() };
    assert_eq!(host.asked.lock().unwrap()[0], question);
}

#[test]
fn a_pending_answer_ends_the_evaluation() {
    let host = Script::answering(Err(Refusal::Pending));
    let result = run_with(&flight(&format!("{TEXTS}{ALLOCATOR}"), LOOKUP), &invocation(""), host);
    assert_eq!(result, Err(Fault::Pending));
}

/// `run` evaluates six times: the numbers and times must be the same each time.
#[test]
fn clock_and_randomness_are_functions_of_the_invocation() {
    let body = r#"
      (drop (call $random (i32.const 1024) (i32.const 70)))
      (drop (call $random (i32.const 1094) (i32.const 30)))
      (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 1128)))
      (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 1136)))
      (call $print (i32.const 1024) (i32.const 120))"#;
    let module = flight("", body);
    let engine = &engines()[0];
    let run = |invocation: &Invocation| {
        run(&module, invocation).unwrap();
        engine.load(&module).unwrap().evaluate(invocation, std::sync::Arc::new(NoCluster)).unwrap().stdout
    };
    let mut given = invocation("a");
    given.clock = Duration::from_secs(1_000_000_000);
    let one = run(&given);
    let time = |at: usize| u64::from_le_bytes(one[at..at + 8].try_into().unwrap());
    assert!(time(104) > 0, "Go's runtime stops on a monotonic clock that is zero");
    assert_eq!(time(112) / 1_000_000_000, 1_000_000_000);
    assert!(one[..100].iter().filter(|byte| **byte == 0).count() < 10, "{one:?}");
    let other = run(&Invocation { stdin: b"b".to_vec(), ..given });
    assert_ne!(one[..100], other[..100]);
    assert_eq!(one[104..], other[104..]);
}

/// An hour's sleep takes no time, and the guest's clock shows it.
#[test]
fn sleeping_moves_only_the_guests_clock() {
    let body = r#"
      (i64.store (i32.const 1024) (i64.const 42))
      (i32.store8 (i32.const 1032) (i32.const 0))
      (i32.store (i32.const 1040) (i32.const 1))
      (i64.store (i32.const 1048) (i64.const 3600000000000))
      (if (i32.ne (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 3000)) (i32.const 0)) (then (unreachable)))
      (if (i32.ne (i32.load (i32.const 3000)) (i32.const 1)) (then (unreachable)))
      (if (i64.ne (i64.load (i32.const 2048)) (i64.const 42)) (then (unreachable)))
      (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 3008)))
      (if (i64.lt_u (i64.load (i32.const 3008)) (i64.const 3600000000000)) (then (unreachable)))
      (if (i64.gt_u (i64.load (i32.const 3008)) (i64.const 3600000009999)) (then (unreachable)))"#;
    run(&flight("", body), &short()).unwrap();
}

/// A module of WebAssembly 2.0 with a start function, several tables, SIMD and bulk memory.
#[test]
fn the_start_function_runs_first() {
    let left = run(
        &module(&format!(
            r#"{PRELUDE}
            (table 4 funcref) (table 4 funcref)
            (data (i32.const 600) "start") (data (i32.const 610) "main")
            (start $begin)
            (func $begin (call $print (i32.const 600) (i32.const 5)))
            (func (export "start") (unreachable))
            (func (export "_start")
              (memory.copy (i32.const 700) (i32.const 610) (i32.const 4))
              (v128.store (i32.const 720) (v128.load (i32.const 700)))
              (call $print (i32.const 720) (i32.const 4)))"#
        )),
        &invocation(""),
    );
    assert_eq!(left.unwrap().stdout, "startmain");
}

/// NaN bits are the one thing in WebAssembly that hardware may choose.
#[test]
fn not_a_number_has_the_same_bits_everywhere() {
    let body = r#"
      (f64.store (i32.const 600) (f64.div (f64.load (i32.const 640)) (f64.load (i32.const 640))))
      (f32.store (i32.const 608) (f32.sqrt (f32.const -1)))
      (f64.store (i32.const 616) (f64.promote_f32 (f32.mul (f32.const nan:0x200000) (f32.load (i32.const 640)))))
      (call $print (i32.const 600) (i32.const 24))"#;
    run(&flight("", body), &invocation("")).unwrap();
}
