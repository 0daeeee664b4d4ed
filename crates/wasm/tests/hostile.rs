//! Flights that mean harm or are broken: an error of the right kind, on all engines, and no panic.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::*;
use horchestra_flight::contract::*;

#[test]
fn deep_recursion() {
    let (cause, log) = trap(run(
        &flight(
            r#"(data (i32.const 900) "log") (func $deep (param i64) (result i64) (i64.add (i64.const 1) (call $deep (local.get 0))))"#,
            "(call $log (i32.const 900) (i32.const 3)) (drop (call $deep (i64.const 1)))",
        ),
        &invocation(""),
    ));
    assert!(cause.contains("stack overflow"), "{cause}");
    assert_eq!(log, "log");
}

/// Programs recurse too: a parser, a tree. 5,000 calls are not deep.
#[test]
fn ordinary_recursion() {
    let body = "(if (i64.ne (call $deep (i64.const 5000)) (i64.const 5000)) (then (unreachable)))";
    let deep = r#"(func $deep (param i64) (result i64)
      (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 0))
        (else (i64.add (i64.const 1) (call $deep (i64.sub (local.get 0) (i64.const 1)))))))"#;
    run(&flight(deep, body), &invocation("")).unwrap();
}

#[test]
fn traps_say_what_happened_in_the_same_words() {
    let table = r#"(table $t 2 2 funcref) (elem (i32.const 0) $f) (func $f (param i32)) (type $v (func))
      (data (i32.const 900) "log")"#;
    for (body, words) in [
        ("(unreachable)", "unreachable"),
        ("(drop (i32.load (i32.const -1)))", "out of bounds memory"),
        ("(memory.fill (i32.const 131071) (i32.const 0) (i32.const 2))", "out of bounds memory"),
        ("(drop (i32.div_u (i32.const 1) (i32.load (i32.const 0))))", "division by zero"),
        (
            "(drop (i32.div_s (i32.const 0x80000000) (i32.sub (i32.load (i32.const 0)) (i32.const 1))))",
            "integer overflow",
        ),
        ("(drop (i32.trunc_f64_s (f64.const nan)))", "float"),
        ("(call_indirect (type $v) (i32.const 9))", "out of bounds table"),
        ("(call_indirect (type $v) (i32.const 1))", "null table entry"),
        ("(call_indirect (type $v) (i32.const 0))", "another type"),
    ] {
        let (cause, log) = trap(run(
            &flight(table, &format!("(call $log (i32.const 900) (i32.const 3)) {body}")),
            &invocation(""),
        ));
        assert!(cause.contains(words), "{body}: {cause}");
        assert_eq!(log, "log");
    }
}

/// Data that does not fit is found when the module starts.
#[test]
fn segments_out_of_bounds() {
    let (cause, _) = trap(run(&flight(r#"(data (i32.const 131070) "too long")"#, ""), &invocation("")));
    assert!(cause.contains("out of bounds memory"), "{cause}");
    let (cause, _) =
        trap(run(&flight("(table 1 funcref) (elem (i32.const 1) $f) (func $f)", ""), &invocation("")));
    assert!(cause.contains("out of bounds table"), "{cause}");
}

#[test]
fn tables_do_not_grow_without_end() {
    let body = r#"
      (if (i32.ne (table.grow $t (ref.null func) (i32.const 1000000)) (i32.const 10)) (then (unreachable)))
      (if (i32.ne (table.grow $t (ref.null func) (i32.const 1000000)) (i32.const -1)) (then (unreachable)))
      (if (i32.ne (table.grow $t (ref.null func) (i32.const -1)) (i32.const -1)) (then (unreachable)))"#;
    run(&flight("(table $t 10 funcref)", body), &invocation("")).unwrap();
}

fn lookup(state: i64, arguments: [(i64, i64); 4]) -> String {
    let [name, namespace, kind, version] =
        arguments.map(|(at, length)| format!("(call $str (i64.const {at}) (i64.const {length}))"));
    format!("(call $lookup (i32.const {state}) {name} {namespace} {kind} {version})")
}

#[test]
fn bad_pointers_to_the_host_functions() {
    let good = [(512, 4), (512, 4), (512, 4), (512, 4)];
    for bad in [
        (131_070, 4),
        (131_072, 1),
        (0xffff_ffff, 1),
        (0xffff_ffff, 0xffff_ffff),
        (0, 0xffff_ffff),
        (1, 131_072),
    ] {
        for position in 0..4 {
            let mut arguments = good;
            arguments[position] = bad;
            let body = format!("(drop {})", lookup(480, arguments));
            let (cause, _) = trap(run(&flight(ALLOCATOR, &body), &invocation("")));
            let name = ["name", "namespace", "kind", "api_version"][position];
            assert!(
                cause.contains("host.k8s_lookup") && cause.contains(&format!("argument {name} ")),
                "{cause}"
            );
        }
    }
    for state in [131_069, 131_072, -1, -4] {
        let (cause, _) =
            trap(run(&flight(ALLOCATOR, &format!("(drop {})", lookup(state, good))), &invocation("")));
        assert!(cause.contains("state pointer"), "{cause}");
    }
    let mapping = "(drop (call $mapping (i32.const 480) (i64.const 0) (i64.const -1)))";
    let (cause, _) = trap(run(&flight(ALLOCATOR, mapping), &invocation("")));
    assert!(cause.contains("host.k8s_rest_mapping") && cause.contains("argument kind"), "{cause}");
    // Length 0 is empty, whatever the address; the last bytes of the memory are memory.
    let body = format!("(drop {})", lookup(131_068, [(-1, 0), (0xffff_ffff, 0), (131_068, 4), (131_071, 1)]));
    run(&flight(ALLOCATOR, &body), &invocation("")).unwrap();
}

/// What is no text is the guest's mistake to handle, and is not asked.
#[test]
fn arguments_that_are_no_text() {
    let host = Script::answering(Ok(b"never".to_vec()));
    let body = format!(
        "(call $print_buffer {}) (i32.store (i32.const 700) (i32.add (i32.const 48) (i32.load (i32.const 480)))) (call $print (i32.const 700) (i32.const 1))",
        lookup(480, [(512, 2), (0, 0), (0, 0), (0, 0)])
    );
    let left = run_with(
        &flight(&format!(r#"{ALLOCATOR} (data (i32.const 512) "\ff\fe")"#), &body),
        &invocation(""),
        host.clone(),
    );
    assert_eq!(left.unwrap().stdout, "k8s_lookup: name is not UTF-8".to_owned() + "2");
    assert!(host.asked.lock().unwrap().is_empty());
    let body = format!(
        "(drop (memory.grow (i32.const 4))) (call $print_buffer {})",
        lookup(480, [(512, 65_537), (0, 0), (0, 0), (0, 0)])
    );
    let left = run_with(&flight(ALLOCATOR, &body), &invocation(""), host.clone()).unwrap();
    assert!(left.stdout.contains("longer than 64 KiB"), "{}", left.stdout);
    assert!(host.asked.lock().unwrap().is_empty());
}

#[test]
fn allocators_that_are_missing_or_mad() {
    let body = format!("(drop {})", lookup(480, [(512, 4); 4]));
    for (malloc, words) in [
        ("", "exports no `malloc`"),
        (r#"(func (export "malloc") (param i32) (result i32) (i32.const 0))"#, "of type (i32) -> i64"),
        (r#"(global (export "malloc") i32 (i32.const 0))"#, "exports no `malloc`"),
        (r#"(func (export "malloc") (param i32) (result i64) (i64.const -1))"#, "outside its memory"),
        (
            r#"(func (export "malloc") (param i32) (result i64) (i64.const 0x0001ffff00000002))"#,
            "outside its memory",
        ),
        (r#"(func (export "malloc") (param i32) (result i64) (unreachable))"#, "unreachable"),
        (r#"(func $m (export "malloc") (param i32) (result i64) (call $m (local.get 0)))"#, "stack overflow"),
        (
            r#"(func (export "malloc") (param i32) (result i64)
              (call $lookup (i32.const 480) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))"#,
            "allocator calls it in turn",
        ),
    ] {
        let (cause, _) = trap(run(&flight(malloc, &body), &invocation("")));
        assert!(cause.contains(words), "{malloc}: {cause}");
    }
    // An allocator may log and exit.
    let malloc = r#"(data (i32.const 900) "log") (func (export "malloc") (param i32) (result i64)
      (call $log (i32.const 900) (i32.const 3)) (call $exit (i32.const 9)) (unreachable))"#;
    let left = run(&flight(malloc, &body), &invocation("")).unwrap();
    assert_eq!((left.exit_code, left.stderr.as_str()), (9, "log"));
}

/// A host that lies about the state must not turn a refusal into an answer.
#[test]
fn a_refusal_is_never_state_zero() {
    let host = Script::answering(Err(Refusal::State(State::Ok, "odd".into())));
    let body = format!(
        "(drop {}) (if (i32.ne (i32.load (i32.const 480)) (i32.const 2)) (then (unreachable)))",
        lookup(480, [(512, 1); 4])
    );
    run_with(&flight(ALLOCATOR, &body), &invocation(""), host).unwrap();
}

/// The functions of `wasi_snapshot_preview1.witx` with their parameters, `i` for i32 and `l` for
/// i64, written down from the specification.
const WASI: &[(&str, &str)] = &[
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "ili"),
    ("fd_advise", "illi"),
    ("fd_allocate", "ill"),
    ("fd_close", "i"),
    ("fd_datasync", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "ill"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "il"),
    ("fd_filestat_set_times", "illi"),
    ("fd_pread", "iiili"),
    ("fd_prestat_get", "ii"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_pwrite", "iiili"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiili"),
    ("fd_renumber", "ii"),
    ("fd_seek", "ilii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiilli"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiillii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("poll_oneoff", "iiii"),
    ("proc_raise", "i"),
    ("sched_yield", ""),
    ("random_get", "ii"),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
];

/// Every function, with arguments from the edges: the same error numbers and the same memory on
/// all engines, and no stop, trap or panic.
#[test]
fn bad_arguments_to_every_wasi_function() {
    const EDGES: [u64; 12] =
        [0, 1, 2, 3, 1024, 65_535, 131_060, 131_071, 131_072, 0x7fff_ffff, 0xffff_fff0, 0xffff_ffff];
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        EDGES[(seed >> 33) as usize % EDGES.len()]
    };
    for (name, params) in WASI {
        let types: Vec<_> = params.chars().map(|c| if c == 'i' { "i32" } else { "i64" }).collect();
        let import = format!(
            r#"(import "wasi_snapshot_preview1" "{name}" (func $f (param {}) (result i32)))"#,
            types.join(" ")
        );
        let calls: String = (0..60)
            .map(|_| {
                let arguments: String = types.iter().map(|ty| format!("({ty}.const {}) ", next())).collect();
                format!("(call $note (call $f {arguments}))\n")
            })
            .collect();
        // The output goes by way of the log, in case the function closes stdout.
        let module = module(&format!(
            r#"{import} {PRELUDE}
            (global $at (mut i32) (i32.const 100000))
            (func $note (param i32) (i32.store (global.get $at) (local.get 0)) (global.set $at (i32.add (global.get $at) (i32.const 4))))
            (func (export "_start") {calls}
              (call $log (i32.const 100000) (i32.const 240)) (call $print (i32.const 0) (i32.const 131072)))"#
        ));
        let left = run(&module, &invocation("some input")).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(left.exit_code, 0, "{name}");
    }
}

#[test]
fn no_files_no_sockets() {
    let imports = r#"
      (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))"#;
    let expect =
        |call: &str, errno: u32| format!("(if (i32.ne {call} (i32.const {errno})) (then (unreachable)))");
    let body = [
        expect("(call $open (i32.const 3) (i32.const 0) (i32.const 512) (i32.const 4) (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 600))", 8),
        expect("(call $prestat (i32.const 3) (i32.const 600))", 8),
        expect("(call $accept (i32.const 3) (i32.const 0) (i32.const 600))", 8),
        expect("(call $accept (i32.const 0) (i32.const 0) (i32.const 600))", 57),
    ]
    .concat();
    run(&module(&format!(r#"{imports} {PRELUDE} (func (export "_start") {body})"#)), &invocation(""))
        .unwrap();
}

/// A guest without a memory has no good pointers.
#[test]
fn no_memory_at_all() {
    let module = module(
        r#"(import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (func (export "_start") (call $exit (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 0))))"#,
    );
    assert_eq!(run(&module, &invocation("")).unwrap().exit_code, 21);
}
