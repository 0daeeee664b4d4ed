//! From the start of the process to the line that says it is ready, with flights compiled before.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use horchestra::embedded::{Embedded, EmbeddedOptions};
use horchestra::{Kind, Manifest};

use crate::Failure;
use crate::reaction::{airway, ready};
use crate::table::{Samples, Table, ms};

const STARTS: usize = 10;

/// What `horchestra up` does, in a process of its own.
pub fn up(directory: &Path) -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let options =
            EmbeddedOptions { listen: ([127, 0, 0, 1], 0).into(), ..EmbeddedOptions::new(directory) };
        let server = Embedded::start(options).await?;
        println!("ready {}", server.url());
        std::future::pending::<()>().await;
        Ok(())
    })
}

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    // Once before, so that keys, store and compiled flights are there.
    tokio::runtime::Runtime::new()?.block_on(async {
        let options = EmbeddedOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            node: false,
            ..EmbeddedOptions::new(&data)
        };
        let server = Embedded::start(options).await?;
        let target = server.runtime().target();
        let options = horchestra::runtime::ApplyOptions::force("bench");
        target.apply(&Kind::of::<horchestra::api::Airway>(), &Manifest::new(airway()?)?, &options).await?;
        ready(&*target).await?;
        server.shutdown().await;
        Ok::<_, Failure>(())
    })?;
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        samples.push(start(&data)?);
    }
    let samples = Samples::new(samples);
    table.row(
        "cold start to ready, p50",
        ms(samples.quantile(0.5)),
        "150 ms",
        format!("worst of {STARTS}: {}", ms(samples.quantile(1.0))),
    );
    Ok(())
}

fn start(data: &Path) -> Result<Duration, Failure> {
    let started = Instant::now();
    let mut child =
        Command::new(std::env::current_exe()?).arg("up").arg(data).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let took = started.elapsed();
    child.kill()?;
    child.wait()?;
    if line.starts_with("ready") { Ok(took) } else { Err(format!("it did not start: {line:?}").into()) }
}
