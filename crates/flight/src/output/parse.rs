//! The text that a flight printed as a desired state.

use horchestra_core::{Condition, DesiredState, Error, Manifest, Object, Result};
use serde_json::Value;

use super::identity;
use crate::contract::{EXIT_STATUS_ONLY, Output};
use crate::document::documents;

/// The text for an output with nothing in it, which Yoke's clients match on.
pub const EMPTY: &str = "failed to takeoff: resource provided is either empty or invalid";
const SHAPE: &str = "input must be resource, list of resources, or list of list of resources";
/// How much of a flight's log goes into an error, in bytes.
const MAX_LOG: usize = 4096;

/// What a flight wants, from what it left behind.
///
/// `instance` is the resource on whose behalf it ran, if there is one: printed among the others it
/// stands for its status.
///
/// - Exit code 0 with only the resource itself says nothing about others: they stay. An empty list
///   says that nothing is wanted.
/// - [`EXIT_STATUS_ONLY`]: only the status counts.
/// - Another exit code is a failure, retried with back-off since the flight alone cannot say
///   whether it would help. If it printed the resource itself, that status is kept and `Ready` is
///   false with the log as its message; everything else it printed is ignored.
pub fn parse(output: &Output, instance: Option<&Object>) -> Result<DesiredState> {
    match output.exit_code {
        0 => Printed::read(&output.stdout, instance)?.desired(),
        EXIT_STATUS_ONLY => Printed::read(&output.stdout, instance)?.status_only(),
        code => {
            let text = failure(code, &output.stderr);
            match Printed::read(&output.stdout, instance).and_then(Printed::status_only) {
                Ok(desired) => Ok(desired.condition(Condition::ready(false, "Error", text))),
                Err(_) => Err(Error::Transient(text)),
            }
        }
    }
}

/// A failed flight's own words, or that it had none.
fn failure(code: i32, stderr: &[u8]) -> String {
    let log = String::from_utf8_lossy(stderr);
    let log = log.trim();
    // The end of a log is where the reason stands.
    let start =
        (log.len().saturating_sub(MAX_LOG)..log.len()).find(|&i| log.is_char_boundary(i)).unwrap_or_default();
    match log.get(start..) {
        Some(log) if !log.is_empty() => log.to_owned(),
        _ => format!(
            "the flight ended with exit code {code} and nothing on stderr; let it say why before it exits"
        ),
    }
}

/// An output taken apart.
struct Printed {
    stages: Vec<Vec<Manifest>>,
    identity: Option<Manifest>,
    /// Whether an empty list was printed, which says that nothing is wanted.
    empty_said: bool,
}

impl Printed {
    fn read(stdout: &[u8], instance: Option<&Object>) -> Result<Self> {
        let documents = documents("output", stdout)?;
        let mut printed = Self { stages: Vec::new(), identity: None, empty_said: false };
        match <[Value; 1]>::try_from(documents) {
            Ok([Value::Array(items)]) if items.is_empty() => printed.empty_said = true,
            Ok([Value::Array(items)]) if items.iter().all(Value::is_array) => {
                for (at, stage) in items.into_iter().enumerate() {
                    let Value::Array(stage) = stage else { continue };
                    printed.add(stage, instance).map_err(|e| e.context(format!("stage {at}")))?;
                }
            }
            Ok([Value::Array(items)]) => printed.add(items, instance)?,
            Ok(one) => printed.add(one.into(), instance)?,
            Err(documents) if documents.is_empty() => return Err(Error::invalid("output", EMPTY)),
            Err(documents) => printed.add(documents, instance)?,
        }
        Ok(printed)
    }

    fn add(&mut self, resources: Vec<Value>, instance: Option<&Object>) -> Result<()> {
        self.empty_said |= resources.is_empty();
        let mut stage = Vec::new();
        for (at, value) in resources.into_iter().enumerate() {
            if !value.is_object() {
                return Err(Error::invalid(format!("output[{at}]"), format!("is not a resource: {SHAPE}")));
            }
            let manifest =
                Manifest::new(value).map_err(|e| e.context(format!("resource {at} of the output")))?;
            if !instance.is_some_and(|instance| identity::is(&manifest, instance)) {
                stage.push(manifest);
            } else if self.identity.is_none() {
                self.identity = Some(manifest);
            } else {
                return Err(Error::invalid(
                    manifest.reference(),
                    "is in the output twice; a resource has one status",
                ));
            }
        }
        if !stage.is_empty() {
            self.stages.push(stage);
        }
        Ok(())
    }

    fn desired(self) -> Result<DesiredState> {
        let only_status = self.identity.is_some() && !self.empty_said;
        let start = if self.stages.is_empty() && !only_status {
            DesiredState::nothing()
        } else {
            DesiredState::new()
        };
        let with_stages = self.stages.into_iter().fold(start, |desired, stage| {
            stage.into_iter().fold(desired.then(), DesiredState::with_manifest)
        });
        let desired = match &self.identity {
            Some(identity) => identity::read(with_stages, identity)?,
            None => with_stages,
        };
        desired.checked()
    }

    fn status_only(self) -> Result<DesiredState> {
        match &self.identity {
            Some(identity) => identity::read(DesiredState::new(), identity)?.checked(),
            None => Err(Error::invalid(
                "output",
                format!(
                    "the exit code {EXIT_STATUS_ONLY} announces a status, and the resource itself was not printed"
                ),
            )),
        }
    }
}
