//! Running a journal again.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use horchestra_core::{Answer, Cluster, DynReconciler, Error, Object, Read, Result, Source};
use serde_json::Value;

use super::entry::JournalEntry;

/// The longest line that is read.
const LINE_LIMIT: usize = 16 << 20;

/// The runs of a journal, in order.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    lines: std::io::Lines<BufReader<File>>,
    line: usize,
}

/// Where a run came out differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path in the desired state, or `error`.
    pub path: String,
    /// What was recorded.
    pub recorded: Value,
    /// What came out now.
    pub replayed: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: recorded {}, now {}", self.path, self.recorded, self.replayed)
    }
}

struct Recorded(JournalEntry);

#[async_trait]
impl Source for Recorded {
    async fn read(&self, read: &Read) -> Result<Answer> {
        self.0.answer(read)
    }
}

impl Replay {
    /// Opens a journal.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)
            .map_err(|e| Error::terminal(format!("cannot open the journal {}: {e}", path.display())))?;
        Ok(Self { path: path.to_owned(), lines: BufReader::new(file).lines(), line: 0 })
    }

    /// Runs one entry again. `Ok(None)` if the same came out.
    pub async fn run(entry: &JournalEntry, reconciler: &dyn DynReconciler) -> Result<Option<Difference>> {
        let resource = Object::from_value(&entry.resource)?;
        let namespace =
            if resource.namespace().is_empty() { "default".into() } else { resource.namespace().clone() };
        let cluster = Cluster::new(Arc::new(Recorded(entry.clone())), namespace);
        let outcome = reconciler.reconcile_object(&resource, &cluster).await.and_then(|d| d.checked());
        let (desired, error) = match &outcome {
            Ok(desired) => (serde_json::to_value(desired)?, Value::Null),
            Err(e) => (Value::Null, Value::String(e.to_string())),
        };
        let recorded_error = entry.error.clone().map_or(Value::Null, Value::String);
        if error != recorded_error {
            return Ok(Some(Difference { path: "error".into(), recorded: recorded_error, replayed: error }));
        }
        Ok(first_difference("", entry.desired.as_ref().unwrap_or(&Value::Null), &desired))
    }
}

impl Iterator for Replay {
    type Item = Result<JournalEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        self.line += 1;
        let at = format!("{}:{}", self.path.display(), self.line);
        Some(match line {
            Err(e) => Err(Error::terminal(format!("{at}: {e}"))),
            Ok(line) if line.len() > LINE_LIMIT => {
                Err(Error::invalid(at, format!("is longer than {LINE_LIMIT} bytes")))
            }
            Ok(line) => {
                serde_json::from_str(&line).map_err(|e| Error::invalid(at, format!("is not a run: {e}")))
            }
        })
    }
}

fn first_difference(path: &str, recorded: &Value, replayed: &Value) -> Option<Difference> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (recorded, replayed) {
        (a, b) if a == b => None,
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let null = Value::Null;
            keys.into_iter().find_map(|k| {
                first_difference(&below(k), a.get(k).unwrap_or(&null), b.get(k).unwrap_or(&null))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(i, (a, b))| first_difference(&format!("{path}[{i}]"), a, b)),
        (a, b) => Some(Difference { path: path.to_owned(), recorded: a.clone(), replayed: b.clone() }),
    }
}
