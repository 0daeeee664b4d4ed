//! Bytes that are no flight: an error that says what they are and what to do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::*;
use horchestra_wasm::{
    EngineOptions, FlightEngine, LoadError, MAX_IMPORTS, MAX_TABLE_ELEMENTS, Wasmi, Wasmtime, inspect,
};

/// A module without names: it ends with its data, whose count it gives before, so that
/// no cut is a whole module.
const SMALL: &str = r#"
  (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
  (memory (export "memory") 1) (table 2 funcref) (elem (i32.const 0) 1)
  (func (export "_start") (data.drop 0) (call 0 (i32.const 3)))
  (data (i32.const 8) "data")"#;

fn says(module: &[u8], words: &[&str]) {
    let text = load_error(module).to_string();
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

#[test]
fn bytes_that_are_something_else() {
    says(b"", &["empty"]);
    says(b"hello", &["starts with [68, 65, 6c, 6c]"]);
    says(b"(module)", &["text", "wat2wasm"]);
    says(b"\n<html>", &["web page"]);
    says(&[0x1f, 0x8b, 8, 0], &["gzip"]);
    says(b"\x7fELF\x02", &["native program"]);
    says(b"\0asm\x02\0\0\0", &["version"]);
    says(b"\0as", &["ends after 3 bytes"]);
}

#[test]
fn a_component() {
    assert_eq!(load_error(b"\0asm\x0d\0\x01\0"), LoadError::Component);
    says(b"\0asm\x0d\0\x01\0", &["component", "wasm32-wasip1"]);
}

#[test]
fn cut_at_every_byte() {
    let whole = module(SMALL);
    let engines = engines();
    for length in 0..whole.len() {
        let cut = &whole[..length];
        let errors: Vec<_> = engines.iter().map(|engine| engine.load(cut).err()).collect();
        assert!(errors[0].is_some(), "cut to {length} bytes it loads");
        assert!(errors.iter().all(|error| *error == errors[0]), "cut to {length}: {errors:?}");
    }
    run(&whole, &invocation("")).unwrap();
}

#[test]
fn changed_at_every_byte() {
    let whole = module(SMALL);
    let engines = engines();
    for at in 0..whole.len() {
        for bit in [0x01, 0x40, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= bit;
            // Whatever it is now, all agree whether it is a flight, and nobody panics.
            let loads: Vec<_> = engines.iter().map(|engine| engine.load(&changed).map(drop)).collect();
            assert!(loads.iter().all(|load| *load == loads[0]), "changed at {at}: {loads:?}");
        }
    }
}

#[test]
fn imports_that_nobody_has_are_all_named_with_what_they_would_need() {
    let module = module(
        r#"(import "host" "k8s_list" (func))
        (import "host" "k8s_lookup" (func (param i32) (result i64)))
        (import "env" "puts" (func (param i32) (result i32)))
        (import "wasi:cli/stdout@0.2.0" "get-stdout" (func (result i32)))
        (import "__wbindgen_placeholder__" "__wbindgen_describe" (func (param i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_fly" (func))
        (import "wasi_snapshot_preview1" "fd_close" (func (param i32) (result i32)))
        (import "other" "memory" (memory 1))
        (func (export "_start"))"#,
    );
    let LoadError::UnknownImports { imports } = load_error(&module) else { panic!("another error") };
    assert_eq!(imports.len(), 8, "{imports:#?}");
    for (import, words) in imports.iter().zip([
        ["host.k8s_list ()", "newer host"],
        ["host.k8s_lookup (i32) -> i64", "(i32, i64, i64, i64, i64) -> i64"],
        ["env.puts", "linked"],
        ["get-stdout", "preview 2"],
        ["__wbindgen_describe", "wasm-bindgen"],
        ["fd_write", "(i32, i32, i32, i32) -> i32"],
        ["fd_fly", "not a function of WASI"],
        ["other.memory memory", "no flight host"],
    ]) {
        assert!(words.iter().all(|word| import.contains(word)), "{import}");
    }
}

#[test]
fn no_start_or_another_one() {
    says(&module(r#"(func (export "_initialize"))"#), &["_start", "library or a reactor"]);
    says(&module(r#"(func (export "_start") (param i32))"#), &["_start of type () -> ()"]);
    says(&module(r#"(memory (export "_start") 1)"#), &["_start of type () -> ()"]);
}

#[test]
fn features_after_2_0() {
    says(&module(r#"(memory i64 1) (func (export "_start"))"#), &["WebAssembly 2.0"]);
    says(&module(r#"(memory 1) (memory 1) (func (export "_start"))"#), &["not valid"]);
    says(&module(r#"(func $f (export "_start") (return_call $f))"#), &["tail call", "WebAssembly 2.0"]);
    says(&module(r#"(table 1 externref) (func (export "_start"))"#), &["gc types"]);
    says(&module(r#"(memory 1 1 shared) (func (export "_start"))"#), &["threads"]);
}

#[test]
fn counts_are_bounded() {
    let too_many = |module: &[u8], what: &str| match load_error(module) {
        LoadError::TooMany { what: named, .. } => assert_eq!(named, what),
        other => panic!("{other}"),
    };
    let import = r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#;
    let start = r#"(func (export "_start"))"#;
    too_many(&module(&(import.repeat(MAX_IMPORTS as usize + 1) + start)), "imports");
    run(&module(&(import.repeat(100) + start)), &invocation("")).unwrap();
    let elements = MAX_TABLE_ELEMENTS + 1;
    too_many(&module(&format!("(table {elements} funcref) {start}")), "elements in a table");
    too_many(&module(&("(table 1 funcref)".repeat(9) + start)), "tables");
    run(&module(&("(table 1 funcref)".repeat(8) + start)), &invocation("")).unwrap();
    // A section that says it has a million functions in a few bytes.
    let mut lying = b"\0asm\x01\0\0\0\x03\x04\xc0\x84\x3d\0".to_vec();
    too_many(&lying, "functions");
    lying[8] = 7;
    too_many(&lying, "exports");
    lying[8] = 1;
    too_many(&lying, "types");
}

#[test]
fn size_is_bounded() {
    let module = flight("", "");
    let options = EngineOptions { max_module: module.len() as u64 - 1, ..Default::default() };
    let engines: [Box<dyn FlightEngine>; 2] =
        [Box::new(Wasmtime::with(options).unwrap()), Box::new(Wasmi::with(options).unwrap())];
    for engine in engines {
        assert!(matches!(engine.load(&module), Err(LoadError::TooLarge { .. })));
        assert!(matches!(
            engine.aot().map(|aot| aot.compile(&module)),
            None | Some(Err(LoadError::TooLarge { .. }))
        ));
    }
}

#[test]
fn an_inspection_names_what_matters() {
    let alias = ALLOCATOR.replace("\"malloc\"", "\"horchestra_malloc\"");
    let mut module = flight(&alias, "");
    for (name, data) in [
        ("yoke.schematics:input", "{}"),
        ("yoke.schematics.cmd:help", "[]"),
        ("yoke.schematics:signature", "{}"),
    ] {
        let mut section = vec![name.len() as u8];
        section.extend_from_slice(name.as_bytes());
        section.extend_from_slice(data.as_bytes());
        module.push(0);
        module.push(section.len() as u8);
        module.extend_from_slice(&section);
    }
    let inspection = inspect(&module).unwrap();
    assert_eq!(inspection.size, module.len() as u64);
    assert_eq!(inspection.sha256.len(), 64);
    assert_eq!(inspection.schematics, ["input", "help"]);
    assert!(inspection.signed && inspection.looks_things_up());
    assert_eq!(inspection.memory, 2 << 16);
    assert!(
        inspection
            .imports
            .iter()
            .any(|i| i.name == "k8s_lookup" && i.ty == "(i32, i64, i64, i64, i64) -> i64")
    );
    assert!(inspection.exports.iter().any(|e| e.name == "horchestra_malloc" && e.ty == "(i32) -> i64"));
    let [here, yoke] = &inspection.hosts[..] else { panic!("two hosts") };
    assert!(here.runs(), "{here:?}");
    assert!(yoke.problems[0].contains("Yoke asks for `malloc`"), "{yoke:?}");
    assert!(inspect(&flight(ALLOCATOR, "")).unwrap().hosts.iter().all(|host| host.runs()));

    let foreign = common::module(r#"(import "env" "f" (func)) (func (export "run"))"#);
    let inspection = inspect(&foreign).unwrap();
    assert!(inspection.hosts.iter().all(|host| !host.runs() && host.problems[0].contains("env.f")));
}
