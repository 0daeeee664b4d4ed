//! `cargo xtask demo`: the examples at work, from nothing but a Rust toolchain.

mod build;
mod cluster;
mod directory;
mod story;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use self::cluster::Cluster;
use self::directory::Directory;
use self::story::Story;
use crate::run::root;
use crate::{install, wasm_target};

/// How long the examples may take once they are asked for.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often an interruption is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// What kubectl needs to connect a watch.
const CONNECT: Duration = Duration::from_millis(800);

/// What the examples ask for, and what comes of it.
const SHOWN: &str = "pipelines,apps,databases,jobs,deployments,secrets";

struct Options {
    /// The step that shall fail.
    fail: Option<String>,
    /// Whether the server stays until it is interrupted.
    keep: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { fail: None, keep: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--keep" => options.keep = true,
                "--fail" => {
                    let step = arguments.next().unwrap_or_default();
                    if !["one", "two", "three"].contains(&step.as_str()) {
                        return Err("--fail takes the step that shall fail: one, two or three".into());
                    }
                    options.fail = Some(step);
                }
                other => {
                    return Err(format!("demo has no option {other:?}; there are --fail STEP and --keep"));
                }
            }
        }
        Ok(options)
    }
}

/// Set by the first interruption; everything that waits looks at it, so that nothing is left behind.
#[derive(Clone)]
struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    fn listen() -> Result<Self, String> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, flag.clone()).map_err(|e| format!("signals: {e}"))?;
        }
        Ok(Self(flag))
    }

    fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) {
            Err("interrupted; everything is cleaned up".into())
        } else {
            Ok(())
        }
    }
}

/// Shows the examples at work.
pub(crate) fn command(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let interrupted = Interrupted::listen()?;
    // Whatever an interruption breaks is not the reader's problem.
    show(&options, &interrupted).map_err(|problem| interrupted.check().err().unwrap_or(problem))
}

fn show(options: &Options, interrupted: &Interrupted) -> Result<(), String> {
    println!("Preparing");
    install::kubectl()?;
    wasm_target::ensure()?;
    let programs = build::programs(interrupted)?;
    build::flights(interrupted)?;
    let directory = Directory::fresh()?;
    build::image(&programs, directory.path())?;

    println!("\nStarting controller, flights and a local node in one process");
    let started = Instant::now();
    let cluster = Cluster::start(&programs.horchestra, directory.path(), interrupted)?;
    println!("  ready after {}: {}", milliseconds(started.elapsed()), cluster.url());
    let started = Instant::now();
    for example in ["pipeline", "app"] {
        cluster.apply_file(&format!("examples/{example}/airway.yaml"))?;
    }
    println!("  waiting until the flights are compiled for this machine");
    cluster.kubectl(&["wait", "--for=condition=Ready", "airways", "--all", "--timeout=120s"])?;
    println!("  airways ready after {}", milliseconds(started.elapsed()));

    println!("\nA Pipeline: three jobs, each only after the one before has succeeded");
    println!(
        "An App: asks for a database, waits for the Secret that its provider makes, only then deploys\n"
    );
    let story = tell(&cluster, options, interrupted)?;

    println!("\nIn the end\n");
    println!("{}", cluster.kubectl(&["get", SHOWN])?);
    for line in story.summary() {
        println!("  {line}");
    }
    if options.keep {
        println!("\nLook around; Ctrl-C ends it:\n\n  export KUBECONFIG={}", cluster.kubeconfig());
        look_around();
        while interrupted.check().is_ok() {
            std::thread::sleep(LOOK);
        }
        println!();
        return Ok(());
    }
    println!("\nTo look around yourself, `cargo xtask demo --keep` leaves it running. Then try");
    look_around();
    if options.fail.is_none() {
        println!("`cargo xtask demo --fail two` shows what happens when a job fails.");
    }
    Ok(())
}

fn look_around() {
    println!(
        "
  kubectl get {SHOWN}
  kubectl describe pipeline hello
  kubectl get events
  kubectl delete job hello-one            # the pipeline wants it, so it comes back
  kubectl delete secret shop-connection   # so does this
"
    );
}

/// Asks for the examples and tells what happens until both have come to their end.
fn tell(cluster: &Cluster, options: &Options, interrupted: &Interrupted) -> Result<Story, String> {
    let (sender, events) = mpsc::channel();
    let _watches = watch::all(cluster, &sender)?;
    drop(sender);
    std::thread::sleep(CONNECT);
    let started = Instant::now();
    let mut story = Story::new(started);
    cluster.apply(&pipeline(options)?)?;
    cluster.apply_file("examples/app/instance.yaml")?;
    while !story.is_over() {
        interrupted.check()?;
        if started.elapsed() > PATIENCE {
            return Err(format!(
                "the examples did not come to an end within {} s:\n{}\n{}",
                PATIENCE.as_secs(),
                cluster.kubectl(&["get", SHOWN]).unwrap_or_default(),
                cluster.log()
            ));
        }
        match events.recv_timeout(LOOK) {
            Ok((at, event)) => story.hear(at, &event).iter().for_each(|line| println!("{line}")),
            Err(RecvTimeoutError::Timeout) => cluster.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err("kubectl ended; is the server gone?".into()),
        }
    }
    Ok(story)
}

/// The example's instance, with the step that shall fail.
fn pipeline(options: &Options) -> Result<String, String> {
    let path = root().join("examples/pipeline/instance.yaml");
    let mut text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if let Some(step) = &options.fail {
        // The spec is the last thing in it.
        text = format!("{}\n  fail: {step}\n", text.trim_end());
    }
    Ok(text)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(ToString::to_string));
        let options = parse(&["--fail", "two", "--keep"]).unwrap();
        assert_eq!((options.fail.as_deref(), options.keep), (Some("two"), true));
        assert!(parse(&["--fail", "four"]).is_err());
        assert!(parse(&["--fail"]).is_err());
        assert!(parse(&["--quick"]).is_err());
    }
}
