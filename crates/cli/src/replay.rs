//! `horchestra replay`: a journal, run again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use horchestra_atc::{Access, FlightReconciler, Modules};
use horchestra_core::{Error, GroupVersionKind, Kind};
use horchestra_flight::contract::Limits;
use horchestra_runtime::{JournalEntry, Replay as Journal};
use horchestra_wasm::{Cache, Wasmi};
use serde_json::Value;

/// Runs the recorded runs of a journal again, without any cluster, and shows the first difference.
///
/// Journals are written by `horchestra up --journal FILE`. Runs of reconcilers that are compiled
/// into a program are counted and passed over: their code is not here.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The journal
    file: PathBuf,
    /// Use this module instead of the recorded one
    #[arg(long, value_name = "MODULE")]
    flight: Option<String>,
}

/// What the runs came to.
#[derive(Default)]
struct Tally {
    same: u32,
    passed_over: u32,
}

impl Replay {
    pub(crate) async fn run(self) -> ExitCode {
        match self.all().await {
            Ok(Ok(tally)) => {
                println!("{} runs came out the same, {} are not of flights", tally.same, tally.passed_over);
                ExitCode::SUCCESS
            }
            Ok(Err(difference)) => {
                println!("{difference}");
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("horchestra: {error}");
                ExitCode::FAILURE
            }
        }
    }

    async fn all(&self) -> Result<Result<Tally, String>, Error> {
        let engine = Wasmi::new().map_err(Error::terminal)?;
        let modules = Modules::new(Arc::new(engine), Cache::in_memory(), &[]).map_err(Error::terminal)?;
        let mut flights: HashMap<String, FlightReconciler> = HashMap::new();
        let mut tally = Tally::default();
        for entry in Journal::open(&self.file)? {
            let entry = entry?;
            let Some(recipe) = &entry.recipe else {
                tally.passed_over += 1;
                continue;
            };
            let key = recipe.to_string();
            if !flights.contains_key(&key) {
                flights.insert(key.clone(), self.flight_of(recipe, &modules)?);
            }
            let Some(flight) = flights.get(&key) else { continue };
            match Journal::run(&entry, flight).await? {
                None => tally.same += 1,
                Some(difference) => return Ok(Err(describe(&entry, &difference.to_string()))),
            }
        }
        Ok(Ok(tally))
    }

    fn flight_of(&self, recipe: &Value, modules: &Modules) -> Result<FlightReconciler, Error> {
        let broken = |what: &str| Error::invalid("recipe of a recorded flight", format!("has no {what}"));
        let text = |path: &str| recipe.pointer(path).and_then(Value::as_str).ok_or_else(|| broken(path));
        let recorded = text("/sha256")?;
        let (url, checksum) = match &self.flight {
            Some(url) => (url.as_str(), None),
            None => (text("/flight")?, Some(recorded)),
        };
        let module = modules.load(url, checksum).map_err(Error::terminal)?;
        let list = |path: &str| recipe.pointer(path).cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        Ok(FlightReconciler {
            kind: Kind {
                gvk: GroupVersionKind::from_manifest(text("/kind/apiVersion")?, text("/kind/kind")?),
                plural: text("/kind/plural")?.into(),
                namespaced: recipe.pointer("/kind/namespaced").and_then(Value::as_bool).unwrap_or(true),
            },
            flight: module.flight,
            module: (module.sha256, url.to_owned()),
            object_path: serde_json::from_value(list("/objectPath"))?,
            limits: Limits::default(),
            access: Access {
                granted: recipe.pointer("/clusterAccess").and_then(Value::as_bool).unwrap_or(false),
                matchers: serde_json::from_value(list("/resourceAccessMatchers"))?,
            },
        })
    }
}

fn describe(entry: &JournalEntry, difference: &str) -> String {
    let name = |field: &str| entry.resource.pointer(field).and_then(Value::as_str).unwrap_or_default();
    format!(
        "the run of {} for {}/{} at {} came out differently\n  because of: {}\n  {difference}",
        entry.reconciler,
        name("/metadata/namespace"),
        name("/metadata/name"),
        entry.time,
        entry.causes.join(", "),
    )
}
