use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::unit::LogLimits;

/// Longest part of a line that is stored at once, in bytes; what Docker and containerd do.
const MAX_PART: usize = 16 << 10;

/// Where a line came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// The log files of one unit: `log`, then older ones as `log.1`, `log.2` and so on.
#[derive(Clone, Debug)]
pub(crate) struct LogWriter {
    inner: Arc<Mutex<Inner>>,
    /// Counts writes, so that readers know when to look again.
    grown: Arc<watch::Sender<u64>>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    file: Option<File>,
    size: u64,
    limits: LogLimits,
}

pub(super) fn file_name(dir: &Path, number: usize) -> PathBuf {
    if number == 0 { dir.join("log") } else { dir.join(format!("log.{number}")) }
}

impl LogWriter {
    pub(crate) fn new(dir: PathBuf, limits: LogLimits) -> Self {
        let inner = Inner { dir, file: None, size: 0, limits };
        Self { inner: Arc::new(Mutex::new(inner)), grown: Arc::new(watch::Sender::new(0)) }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    /// Appends a line, or a part of one. A disk that is full loses lines, never the workload.
    fn append(&self, stream: Stream, text: &[u8], partial: bool) {
        let result = self.inner.lock().unwrap_or_else(PoisonError::into_inner).append(stream, text, partial);
        if let Err(e) = result {
            tracing::warn!("a log line was lost: {e}");
        }
        self.grown.send_modify(|n| *n += 1);
    }
}

impl Inner {
    fn append(&mut self, stream: Stream, text: &[u8], partial: bool) -> io::Result<()> {
        let name = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        let tag = if partial { 'P' } else { 'F' };
        let mut line = format!("{:.9} {name} {tag} ", Timestamp::now()).into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        if self.size > 0 && self.size + line.len() as u64 > self.limits.file_bytes {
            self.rotate()?;
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                std::fs::create_dir_all(&self.dir)?;
                let file = OpenOptions::new().create(true).append(true).open(file_name(&self.dir, 0))?;
                self.size = file.metadata()?.len();
                file
            }
        };
        (&file).write_all(&line)?;
        self.size += line.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let last = self.limits.files.saturating_sub(1);
        for number in (0..last).rev() {
            match std::fs::rename(file_name(&self.dir, number), file_name(&self.dir, number + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        if last == 0 {
            std::fs::remove_file(file_name(&self.dir, 0))?;
        }
        self.size = 0;
        Ok(())
    }
}

/// Copies what a process writes into the log, line by line, until all its writers are gone.
#[derive(Debug)]
pub(crate) struct Pump<R> {
    reader: R,
    stream: Stream,
    log: LogWriter,
}

impl<R: Read> Pump<R> {
    pub(crate) fn new(reader: R, stream: Stream, log: LogWriter) -> Self {
        Self { reader, stream, log }
    }

    pub(crate) fn run(mut self) {
        let mut buffer = vec![0u8; MAX_PART];
        let mut filled = 0;
        loop {
            let room = buffer.get_mut(filled..).unwrap_or_default();
            match self.reader.read(room) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            }
            let data = buffer.get(..filled).unwrap_or_default();
            let mut rest = data;
            while let Some(end) = rest.iter().position(|b| *b == b'\n') {
                let (line, after) = rest.split_at(end);
                self.log.append(self.stream, line, false);
                rest = after.get(1..).unwrap_or_default();
            }
            if rest.len() == buffer.len() {
                self.log.append(self.stream, rest, true);
                filled = 0;
            } else {
                let start = filled - rest.len();
                buffer.copy_within(start..filled, 0);
                filled -= start;
            }
        }
        if filled > 0 {
            self.log.append(self.stream, buffer.get(..filled).unwrap_or_default(), false);
        }
    }
}
