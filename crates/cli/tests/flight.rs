//! `horchestra flight`, as a script sees it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const INSTANCE: &str = include_str!("../../../examples/pipeline/instance.yaml");

/// Where the compiled examples are, see `examples/module.rs`.
fn pipeline() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = std::env::var_os("HORCHESTRA_FLIGHTS").map_or_else(
        || {
            let built =
                Command::new(env!("CARGO")).args(["xtask", "flights"]).current_dir(&root).output().unwrap();
            assert!(
                built.status.success(),
                "cargo xtask flights: {}",
                String::from_utf8_lossy(&built.stderr)
            );
            root.join("target/flights")
        },
        PathBuf::from,
    );
    directory.join("pipeline.wasm")
}

/// A module in text form, as a file.
struct Module(tempfile::TempDir);

impl Module {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("m.wasm"), wat::parse_str(text).unwrap()).unwrap();
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("m.wasm")
    }
}

fn run(module: &Path, args: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horchestra"));
    // The interpreter: a debug build of the compiler takes seconds.
    command.args(["flight", "run", "--engine", "wasmi"]).arg(module).args(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A flight need not read its input to the end.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

const DONE: &str = "
- apiVersion: batch/v1
  kind: Job
  metadata: {name: hello-one}
  status: {conditions: [{type: Complete, status: 'True'}]}
";

#[test]
fn it_prints_what_is_desired_and_nothing_else() {
    let output = run(&pipeline(), &[], INSTANCE);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let desired = json(&output);
    assert_eq!(desired["stages"][0][0]["metadata"]["name"], "hello-one");
    assert_eq!(desired["stages"][0].as_array().unwrap().len(), 1);
    assert_eq!(desired["status"]["message"], "running job hello-one");
}

#[test]
fn it_sees_the_objects_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let objects = directory.path().join("objects.yaml");
    std::fs::write(&objects, DONE).unwrap();
    let objects = objects.to_str().unwrap();
    let output = run(&pipeline(), &["--cluster", objects, "--stats"], INSTANCE);
    assert_eq!(json(&output)["status"]["message"], "running job hello-two");
    let stats = text(&output.stderr);
    assert!(stats.contains("read default/Job.batch:hello-one: found"), "{stats}");
    assert!(stats.contains("read default/Job.batch:hello-two: absent"), "{stats}");
    let plan = text(&run(&pipeline(), &["--cluster", objects, "-o", "plan"], INSTANCE).stdout);
    assert!(plan.contains("~ patch default/Job.batch:hello-one"), "{plan}");
    assert!(plan.contains("+ create default/Job.batch:hello-two"), "{plan}");
    // A file that is wrong is named, and nothing is printed.
    std::fs::write(objects, "a: [").unwrap();
    let output = run(&pipeline(), &["--cluster", objects], INSTANCE);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
    assert!(text(&output.stderr).contains("objects.yaml"));
}

#[test]
fn a_flights_own_words_and_exit_status() {
    let module = Module::new(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "\10\00\00\00\05\00\00\00")
            (data (i32.const 16) "oops\n")
            (func (export "_start")
                (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                (call $exit (i32.const 7))))"#,
    );
    let output = run(&module.path(), &[], INSTANCE);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("", "oops\n"));
    let wrong = run(&pipeline(), &[], "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        text(&wrong.stderr).contains("this flight is for Pipeline.examples.com"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn limits_are_flags_and_say_so() {
    let endless =
        Module::new(r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#);
    for (module, args, flag) in [
        (endless.path(), ["--timeout", "30ms"], "--timeout"),
        (pipeline(), ["--max-memory", "1"], "--max-memory"),
        (pipeline(), ["--max-lookups", "0"], "--max-lookups"),
    ] {
        let output = run(&module, &args, INSTANCE);
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{args:?}: {stderr}");
        assert!(stderr.contains(flag), "{args:?}: {stderr}");
    }
    let denied = run(&pipeline(), &["--no-cluster-access"], INSTANCE);
    assert_eq!(denied.status.code(), Some(1));
    assert!(text(&denied.stderr).contains("access to the cluster has not been granted"));
}

#[test]
fn inspect_says_what_it_is() {
    let inspect = |module: &Path, args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_horchestra"))
            .args(["flight", "inspect"])
            .arg(module)
            .args(args)
            .output()
            .unwrap()
    };
    let output = inspect(&pipeline(), &["-o", "json"]);
    let facts = json(&output);
    assert_eq!(facts["size"], std::fs::metadata(pipeline()).unwrap().len());
    let imports: Vec<_> =
        facts["imports"].as_array().unwrap().iter().map(|i| i["module"].as_str().unwrap()).collect();
    assert!(imports.iter().all(|m| ["host", "wasi_snapshot_preview1"].contains(m)), "{imports:?}");
    for host in facts["hosts"].as_array().unwrap() {
        assert_eq!(host["problems"].as_array().unwrap().len(), 0, "{host}");
    }
    let stranger = Module::new(
        r#"(module (import "env" "now" (func)) (memory (export "memory") 1) (func (export "_start")))"#,
    );
    let output = inspect(&stranger.path(), &[]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert!(said.contains("not on") && said.contains("env.now"), "{said}");
    let output = inspect(Path::new("/etc/hostname"), &[]);
    assert_eq!(output.status.code(), Some(1));
}
