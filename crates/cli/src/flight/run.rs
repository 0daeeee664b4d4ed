//! `horchestra flight run`.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use horchestra_core::{Error, Object, ReadSet, ReleaseId, Seen};
use horchestra_flight::contract::{Evaluate, Host, Invocation, NoCluster, Output};
use horchestra_flight::testing::{Evaluation, FakeCluster};
use horchestra_flight::{ClusterHost, document, output};
use horchestra_wasm::{EngineOptions, FlightEngine, LoadError, Wasmi, Wasmtime};

use super::limits::LimitArgs;

/// The exit status when the flight could not be run, or not to its end: that of `env` and `docker run`.
const NOT_RUN: u8 = 125;
/// The most bytes of input.
const MAX_INPUT: u64 = horchestra_flight::MAX_BYTES as u64;

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The module's file
    module: PathBuf,
    /// Arguments for the flight, after `--`
    #[arg(last = true)]
    args: Vec<String>,
    /// The objects the flight can read: YAML or JSON, as `kubectl get -o yaml` prints it
    #[arg(long, value_name = "OBJECTS")]
    cluster: Option<PathBuf>,
    /// Grant no access to any cluster
    #[arg(long, conflicts_with = "cluster")]
    no_cluster_access: bool,
    /// What time it is for the flight's reads, as in 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// The release's name [default: that of the resource]
    #[arg(long)]
    release: Option<String>,
    /// The release's namespace [default: that of the resource]
    #[arg(short, long)]
    namespace: Option<String>,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Format::Json)]
    output: Format,
    /// What runs it
    #[arg(long, value_enum, default_value_t = Engine::Wasmtime)]
    engine: Engine,
    /// Print on stderr what it cost and what was read
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The desired state as one JSON object
    Json,
    /// The same as YAML
    Yaml,
    /// What the flight itself printed
    Raw,
    /// What would be done in the cluster of --cluster
    Plan,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    /// Compiles first, then runs fast
    Wasmtime,
    /// Runs at once, slowly
    Wasmi,
}

impl Engine {
    fn load(self, module: &[u8]) -> Result<Arc<dyn Evaluate>, LoadError> {
        let options = EngineOptions::default();
        match self {
            Self::Wasmtime => Wasmtime::on_demand(options)?.load(module),
            Self::Wasmi => Wasmi::with(options)?.load(module),
        }
    }
}

pub(crate) fn command(args: &Args) -> ExitCode {
    run(args).unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        ExitCode::from(NOT_RUN)
    })
}

fn run(args: &Args) -> Result<ExitCode, String> {
    let module = super::read(&args.module)?;
    let stdin = read_stdin()?;
    let mut cluster = objects(args)?;
    // Any text may be input; one that is a resource is what the release is about.
    let resource =
        document("stdin", &stdin).ok().filter(|v| v.get("kind").is_some() && v.get("metadata").is_some());
    let instance = resource.map(|value| cluster.put_value(value)).transpose().map_err(|e| e.to_string())?;
    let invocation = invocation(args, stdin, instance.as_ref());
    let namespace = args.namespace.clone().unwrap_or_else(|| namespace(instance.as_ref()));

    let started = Instant::now();
    let flight = args.engine.load(&module).map_err(|e| format!("{}: {e}", args.module.display()))?;
    let loaded = started.elapsed();
    let reader = Arc::new(cluster.host(&namespace));
    let host: Arc<dyn Host> = if args.no_cluster_access { Arc::new(NoCluster) } else { reader.clone() };
    let result = flight.evaluate(&invocation, host).map_err(|fault| fault.to_string())?;

    let mut stderr = std::io::stderr().lock();
    // If stderr is gone there is nobody to tell.
    let _ = stderr.write_all(&result.stderr);
    if args.stats {
        let _ = stderr.write_all(stats(&result, loaded, &reader).as_bytes());
    }
    drop(stderr);
    let code = exit_code(result.exit_code);
    if let Some(text) = answer(args, result, instance, &cluster, reader.reads())? {
        std::io::stdout().lock().write_all(&text).map_err(|e| format!("stdout: {e}"))?;
    }
    Ok(code)
}

fn read_stdin() -> Result<Vec<u8>, String> {
    let mut stdin = Vec::new();
    if std::io::stdin().is_terminal() {
        return Ok(stdin);
    }
    std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut stdin).map_err(|e| format!("stdin: {e}"))?;
    if stdin.len() as u64 > MAX_INPUT {
        return Err(format!("stdin: more than {MAX_INPUT} bytes; a resource is far smaller"));
    }
    Ok(stdin)
}

fn objects(args: &Args) -> Result<FakeCluster, String> {
    let cluster = match &args.cluster {
        None => FakeCluster::new(),
        Some(path) => {
            let problem = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
            let text = std::fs::read(path).map_err(|e| problem(&e))?;
            FakeCluster::from_text(&text).map_err(|e| problem(&e))?
        }
    };
    Ok(match &args.now {
        Some(now) => cluster.at(now),
        None => cluster,
    })
}

fn namespace(instance: Option<&Object>) -> String {
    instance
        .map_or_else(|| "default".into(), |o| ReleaseId::of_instance(&o.reference()).namespace.to_string())
}

fn invocation(args: &Args, stdin: Vec<u8>, instance: Option<&Object>) -> Invocation {
    let stem = || args.module.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let of_instance = || instance.map(|o| ReleaseId::of_instance(&o.reference()).name.to_string());
    let release = args.release.clone().or_else(of_instance).unwrap_or_else(stem);
    let namespace = args.namespace.clone().unwrap_or_else(|| namespace(instance));
    let mut invocation = Invocation::new(&release, &namespace, stdin);
    invocation.args.extend(args.args.iter().cloned());
    invocation.limits = args.limits.limits();
    invocation
}

/// What to print on stdout; nothing if the flight failed and left nothing to see.
fn answer(
    args: &Args,
    result: Output,
    instance: Option<Object>,
    cluster: &FakeCluster,
    reads: ReadSet,
) -> Result<Option<Vec<u8>>, String> {
    if args.output == Format::Raw {
        return Ok(Some(result.stdout));
    }
    let desired = match output::parse(&result, instance.as_ref()) {
        Ok(desired) => desired,
        // Its own words are on stderr already.
        Err(Error::Transient(_)) if result.exit_code != 0 => return Ok(None),
        Err(e) => return Err(format!("the flight's output is not a desired state: {e}")),
    };
    let text = match args.output {
        Format::Json | Format::Raw => format!("{:#}\n", serde_json::json!(desired)),
        Format::Yaml => serde_saphyr::to_string(&desired).map_err(|e| e.to_string())?,
        Format::Plan => {
            let instance =
                instance.ok_or("-o plan needs the resource on stdin: what is planned belongs to it")?;
            let evaluation = Evaluation { instance, desired, reads, log: String::new() };
            cluster.plan(&evaluation).map_err(|e| e.to_string())?.to_string()
        }
    };
    Ok(Some(text.into_bytes()))
}

fn stats(result: &Output, loaded: std::time::Duration, host: &ClusterHost) -> String {
    let stats = &result.stats;
    let mut text = format!(
        "loaded in {loaded:.1?}, evaluated in {:.1?}, {} KiB of memory, {} lookups\n",
        stats.time,
        stats.memory >> 10,
        stats.lookups
    );
    for (read, seen) in host.reads().iter() {
        let what = match seen {
            Seen::Absent | Seen::Served(false) => "absent".to_owned(),
            Seen::Versions(objects) => format!("{} objects", objects.len()),
            Seen::Flag(flag) => flag.to_string(),
            _ => "found".to_owned(),
        };
        text += &format!("read {read}: {what}\n");
    }
    text
}

/// An exit status has 8 bits; a failure stays one.
fn exit_code(code: i32) -> ExitCode {
    match code {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(u8::try_from(code & 0xff).ok().filter(|c| *c != 0).unwrap_or(1)),
    }
}
