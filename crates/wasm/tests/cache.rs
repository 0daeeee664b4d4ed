//! Compiled modules on disk: used when they are ours, refused when they are not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use common::*;
use horchestra_flight::contract::{Evaluate, NoCluster};
use horchestra_wasm::{Aot, Cache, CacheError, FlightEngine, LoadError, Verified, Wasmi, Wasmtime};

/// The compiling engine, counting what it does.
#[derive(Debug, Clone)]
struct Counting {
    engine: Wasmtime,
    compiled: Arc<AtomicU32>,
    loaded: Arc<AtomicU32>,
    fingerprint: String,
}

impl Counting {
    fn new() -> Self {
        let engine = Wasmtime::new().unwrap();
        let fingerprint = engine.fingerprint();
        Self { engine, compiled: Arc::default(), loaded: Arc::default(), fingerprint }
    }

    fn counts(&self) -> (u32, u32) {
        (self.compiled.load(SeqCst), self.loaded.load(SeqCst))
    }
}

impl FlightEngine for Counting {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn load(&self, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError> {
        self.engine.load(module)
    }

    fn aot(&self) -> Option<&dyn Aot> {
        Some(self)
    }
}

impl Aot for Counting {
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn compile(&self, module: &[u8]) -> Result<Vec<u8>, LoadError> {
        self.compiled.fetch_add(1, SeqCst);
        self.engine.compile(module)
    }

    fn load_compiled(&self, compiled: Verified<'_>) -> Result<Arc<dyn Evaluate>, LoadError> {
        self.loaded.fetch_add(1, SeqCst);
        self.engine.load_compiled(compiled)
    }
}

fn exits_with(code: i32) -> Vec<u8> {
    flight("", &format!("(call $exit (i32.const {code}))"))
}

fn exit_code(flight: &Arc<dyn Evaluate>) -> i32 {
    flight.evaluate(&invocation(""), Arc::new(NoCluster)).unwrap().exit_code
}

fn compiled_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "compiled"))
        .collect();
    files.sort();
    files
}

struct Place {
    _root: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("cache");
        Self { _root: root, path }
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.path).unwrap()
    }
}

#[test]
fn compiled_once_and_loaded_in_the_next_process() {
    let (place, engine, module) = (Place::new(), Counting::new(), exits_with(5));
    let cache = place.cache();
    assert_eq!(exit_code(&cache.load(&engine, &module).unwrap()), 5);
    assert_eq!(exit_code(&cache.load(&engine, &module).unwrap()), 5);
    assert_eq!(engine.counts(), (1, 1), "shared in memory");
    let again = place.cache();
    let digest = horchestra_wasm::inspect(&module).unwrap().sha256;
    assert!(again.peek(&engine, &digest).is_none());
    assert_eq!(exit_code(&again.load(&engine, &module).unwrap()), 5);
    assert_eq!(engine.counts(), (1, 2), "loaded, not compiled");
    assert_eq!(exit_code(&again.peek(&engine, &digest).unwrap()), 5);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.path), 0o700);
    for file in compiled_files(&place.path).iter().chain([&place.path.join("key")]) {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}

#[test]
fn many_callers_compile_once() {
    let (place, engine, module) = (Place::new(), Counting::new(), exits_with(5));
    let cache = place.cache();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(exit_code(&cache.load(&engine, &module).unwrap()), 5));
        }
    });
    assert_eq!(engine.counts(), (1, 1));
}

/// What somebody does to a file.
type Damage = fn(&Path);

/// What each damage does to the file, and that the flight runs all the same, compiled again.
#[test]
fn a_changed_file_is_refused_and_replaced() {
    let damages: [(&str, Damage); 8] = [
        ("one bit", |file| {
            let mut bytes = fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("the last byte", |file| {
            let mut bytes = fs::read(file).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("cut short", |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("longer", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes.push(0);
            fs::write(file, bytes).unwrap();
        }),
        ("empty", |file| fs::write(file, b"").unwrap()),
        ("open to others", |file| fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap()),
        ("a link", |file| {
            let moved = file.with_extension("moved");
            fs::rename(file, &moved).unwrap();
            symlink(moved, file).unwrap();
        }),
        ("a directory", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let (place, engine, module) = (Place::new(), Counting::new(), exits_with(5));
        place.cache().load(&engine, &module).unwrap();
        let [file] = &compiled_files(&place.path)[..] else { panic!("one file") };
        damage(file);
        assert_eq!(exit_code(&place.cache().load(&engine, &module).unwrap()), 5, "{what}");
        assert_eq!(engine.counts(), (2, 2), "{what}: refused before it is loaded, then compiled");
        if what != "a directory" {
            assert_eq!(exit_code(&place.cache().load(&engine, &module).unwrap()), 5, "{what}");
            assert_eq!(engine.counts(), (2, 3), "{what}: replaced");
        }
    }
}

#[test]
fn the_file_of_another_module_is_refused() {
    let (place, engine) = (Place::new(), Counting::new());
    let (five, six) = (exits_with(5), exits_with(6));
    place.cache().load(&engine, &five).unwrap();
    let first = compiled_files(&place.path).remove(0);
    place.cache().load(&engine, &six).unwrap();
    let second = compiled_files(&place.path).into_iter().find(|file| *file != first).unwrap();
    fs::copy(&first, &second).unwrap();
    assert_eq!(exit_code(&place.cache().load(&engine, &six).unwrap()), 6);
    assert_eq!(engine.counts(), (3, 3));
}

#[test]
fn another_key_makes_all_files_strangers() {
    let (place, engine, module) = (Place::new(), Counting::new(), exits_with(5));
    place.cache().load(&engine, &module).unwrap();
    for bad in [vec![0; 32], vec![1; 5], vec![1; 64]] {
        fs::write(place.path.join("key"), bad).unwrap();
        let before = engine.counts().0;
        assert_eq!(exit_code(&place.cache().load(&engine, &module).unwrap()), 5);
        assert_eq!(engine.counts().0, before + 1);
    }
}

#[test]
fn another_engine_version_has_its_own_files() {
    let (place, mut engine, module) = (Place::new(), Counting::new(), exits_with(5));
    place.cache().load(&engine, &module).unwrap();
    engine.fingerprint = "wasmtime-next".into();
    place.cache().load(&engine, &module).unwrap();
    assert_eq!(engine.counts().0, 2);
    assert_eq!(compiled_files(&place.path).len(), 2);
}

#[test]
fn directories_that_are_not_ours_alone() {
    let place = Place::new();
    fs::create_dir(&place.path).unwrap();
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Cache::open(&place.path).unwrap_err();
    assert!(
        matches!(&error, CacheError::Unsafe { .. }) && error.to_string().contains("chmod 700"),
        "{error}"
    );
    let link = place.path.with_extension("link");
    symlink(&place.path, &link).unwrap();
    assert!(matches!(Cache::open(&link), Err(CacheError::Unsafe { .. })));
    let file = place.path.with_extension("file");
    fs::write(&file, b"").unwrap();
    assert!(Cache::open(&file).is_err());
}

#[test]
fn budgets_hold_on_disk_and_in_memory() {
    let (place, engine) = (Place::new(), Counting::new());
    let one = exits_with(1);
    place.cache().load(&engine, &one).unwrap();
    let size = fs::metadata(&compiled_files(&place.path)[0]).unwrap().len();
    let cache = place.cache().with_budgets(size * 5 / 2, size * 5 / 2);
    for code in 1..=4 {
        cache.load(&engine, &exits_with(code)).unwrap();
    }
    assert_eq!(compiled_files(&place.path).len(), 2);
    let loaded =
        |code| cache.peek(&engine, &horchestra_wasm::inspect(&exits_with(code)).unwrap().sha256).is_some();
    assert_eq!([1, 2, 3, 4].map(loaded), [false, false, true, true]);
    // One that is larger than the budget is loaded and stays until the next.
    let tiny = Cache::in_memory().with_budgets(1, 1);
    assert_eq!(exit_code(&tiny.load(&engine, &one).unwrap()), 1);
}

#[test]
fn a_bad_module_fails_each_time_and_leaves_nothing() {
    let place = Place::new();
    let cache = place.cache();
    for engine in engines() {
        for _ in 0..2 {
            assert!(matches!(cache.load(&*engine, b"\0asm\x0d\0\x01\0"), Err(LoadError::Component)));
        }
    }
    assert!(compiled_files(&place.path).is_empty());
}

#[test]
fn an_engine_that_compiles_nothing_is_cached_in_memory() {
    let (place, engine, module) = (Place::new(), Wasmi::new().unwrap(), exits_with(7));
    let cache = place.cache();
    let first = cache.load(&engine, &module).unwrap();
    assert!(Arc::ptr_eq(&first, &cache.load(&engine, &module).unwrap()));
    assert_eq!(exit_code(&first), 7);
    assert!(compiled_files(&place.path).is_empty());
}
