//! Writing a journal.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use horchestra_core::{Answer, DesiredState, Error, Object, Read, Result, Source};
use jiff::Timestamp;

use super::entry::{JournalEntry, answer_to_json, read_to_json};
use super::mask::Mask;
use crate::Cause;

/// How large a journal becomes before it starts anew, the old part kept beside it with `.1`.
const LIMIT: u64 = 64 << 20;

/// A file with one line of JSON for each run. Contents of Secrets are not in it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<(File, u64)>,
    salt: [u8; 16],
}

impl Journal {
    /// Opens a journal to append to, readable by its owner alone.
    pub fn open(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        let path = path.into();
        let file = open(&path)?;
        let size = file.metadata()?.len();
        let mut salt = [0; 16];
        File::open("/dev/urandom").and_then(|mut f| std::io::Read::read_exact(&mut f, &mut salt))?;
        Ok(Self { path, file: Mutex::new((file, size)), salt })
    }

    pub(crate) fn record(
        &self,
        reconciler: &str,
        recipe: Option<serde_json::Value>,
        causes: &[Cause],
        resource: &Object,
        answers: &[(Read, Answer)],
        outcome: std::result::Result<&DesiredState, &Error>,
    ) {
        let reads: Vec<_> = answers.iter().map(|(r, a)| (read_to_json(r), answer_to_json(a))).collect();
        let mut entry = JournalEntry {
            time: Timestamp::now().to_string(),
            reconciler: reconciler.to_owned(),
            recipe,
            causes: causes.iter().map(ToString::to_string).collect(),
            resource: resource.to_value(),
            reads,
            desired: outcome.ok().and_then(|d| serde_json::to_value(d).ok()),
            error: outcome.err().map(ToString::to_string),
        };
        let mut mask = Mask::new(self.salt);
        mask.learn(&entry.resource);
        entry.reads.iter().for_each(|(_, a)| mask.learn(a));
        entry.desired.iter().for_each(|d| mask.learn(d));
        mask.apply(&mut entry.resource);
        entry.reads.iter_mut().for_each(|(_, a)| mask.apply(a));
        entry.desired.iter_mut().for_each(|d| mask.apply(d));
        if let Some(error) = entry.error.take() {
            let mut text = serde_json::Value::String(error);
            mask.apply(&mut text);
            entry.error = text.as_str().map(str::to_owned);
        }
        if let Err(error) = self.append(&entry) {
            tracing::warn!(%error, path = %self.path.display(), "the journal cannot be written");
        }
    }

    fn append(&self, entry: &JournalEntry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.1 > LIMIT {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            std::fs::rename(&self.path, old)?;
            *guard = (open(&self.path)?, 0);
        }
        guard.0.write_all(&line)?;
        guard.1 += line.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Passes reads on and keeps their answers.
pub(crate) struct Recorder {
    source: Arc<dyn Source>,
    answers: Mutex<Vec<(Read, Answer)>>,
}

impl Recorder {
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, answers: Mutex::default() }
    }

    pub(crate) fn answers(&self) -> Vec<(Read, Answer)> {
        std::mem::take(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Source for Recorder {
    async fn read(&self, read: &Read) -> Result<Answer> {
        let answer = self.source.read(read).await?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if !answers.iter().any(|(r, _)| r == read) {
            answers.push((read.clone(), answer.clone()));
        }
        Ok(answer)
    }
}
