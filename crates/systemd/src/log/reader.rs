use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::line::Line;
use super::writer::file_name;
use crate::{Error, Result};

/// Which part of a log, in the words of `kubectl logs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// Go on until the unit has ended.
    pub follow: bool,
    /// Only so many lines from the end.
    pub tail: Option<usize>,
    /// Only lines from this time on.
    pub since: Option<Timestamp>,
    /// Each line with its time in front.
    pub timestamps: bool,
    /// At most so many bytes.
    pub limit_bytes: Option<u64>,
}

/// Chunks of a log as they come. It ends with the log, or when the receiver is dropped.
pub type LogStream = mpsc::Receiver<Vec<u8>>;

/// Chunks that wait for a slow reader; then reading the files waits, never the workload.
const QUEUE: usize = 16;
const CHUNK: usize = 32 << 10;
/// Most files that are ever looked for.
const MAX_FILES: usize = 64;
/// How long a follower waits before it looks by itself whether it is still wanted.
const POLL: Duration = Duration::from_secs(1);

/// Begins to read the log in `dir`. `grown` tells when there is more, and by being closed that there will not be.
pub(crate) fn open(
    dir: PathBuf,
    options: LogOptions,
    grown: Option<watch::Receiver<u64>>,
) -> Result<LogStream> {
    if !file_name(&dir, 0).exists() && grown.is_none() {
        return Err(Error::io(
            file_name(&dir, 0).display().to_string(),
            io::Error::from(io::ErrorKind::NotFound),
        ));
    }
    let (sender, receiver) = mpsc::channel(QUEUE);
    let runtime = tokio::runtime::Handle::current();
    // A thread of its own: a follower may live for days, and must not take a place from short work.
    let work = move || {
        let mut reader = Reader { dir, options, sender, sent: 0, chunk: Vec::new() };
        let grown = grown.filter(|_| reader.options.follow);
        if let Err(e) = reader.run(grown, &runtime) {
            tracing::debug!("reading a log ended: {e}");
        }
    };
    std::thread::Builder::new()
        .name("log reader".to_owned())
        .spawn(work)
        .map_err(|e| Error::io("a thread to read a log", e))?;
    Ok(receiver)
}

struct Reader {
    dir: PathBuf,
    options: LogOptions,
    sender: mpsc::Sender<Vec<u8>>,
    sent: u64,
    chunk: Vec<u8>,
}

/// The reader's receiver is gone, or all that was asked for is sent.
fn enough() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

impl Reader {
    fn run(
        &mut self,
        grown: Option<watch::Receiver<u64>>,
        runtime: &tokio::runtime::Handle,
    ) -> io::Result<()> {
        let old: Vec<PathBuf> =
            (1..MAX_FILES).map(|n| file_name(&self.dir, n)).take_while(|p| p.exists()).collect();
        let mut tail: Option<VecDeque<Vec<u8>>> = self.options.tail.map(|_| VecDeque::new());
        for path in old.iter().rev() {
            if let Ok(file) = File::open(path) {
                self.file(&mut BufReader::new(file), &mut tail)?;
            }
        }
        let mut current = self.open_current()?;
        if let Some(current) = &mut current {
            self.file(current, &mut tail)?;
        }
        for line in tail.take().into_iter().flatten() {
            self.send(&line)?;
        }
        self.flush()?;
        let Some(mut grown) = grown else { return Ok(()) };
        loop {
            // Asked before reading, so that what is written in between is not missed.
            let ended = grown.has_changed().is_err();
            grown.mark_unchanged();
            if current.is_none() {
                current = self.open_current()?;
            }
            if let Some(open) = &mut current {
                self.file(open, &mut None)?;
                if self.is_rotated(open.get_ref()) {
                    self.file(open, &mut None)?;
                    current = None;
                    continue;
                }
            }
            self.flush()?;
            if ended {
                return Ok(());
            }
            if self.sender.is_closed() {
                return Err(enough());
            }
            let _ = runtime.block_on(async { tokio::time::timeout(POLL, grown.changed()).await });
        }
    }

    fn open_current(&self) -> io::Result<Option<BufReader<File>>> {
        match File::open(file_name(&self.dir, 0)) {
            Ok(file) => Ok(Some(BufReader::new(file))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn is_rotated(&self, file: &File) -> bool {
        let ino = |meta: io::Result<std::fs::Metadata>| meta.ok().map(|m| m.ino());
        ino(file.metadata()) != ino(Path::metadata(&file_name(&self.dir, 0)))
    }

    /// All whole lines that a file has left.
    fn file(&mut self, reader: &mut BufReader<File>, tail: &mut Option<VecDeque<Vec<u8>>>) -> io::Result<()> {
        loop {
            let mut line = Vec::new();
            // The writer writes whole lines at once, so that an incomplete one is the end.
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let Some(text) = line.strip_suffix(b"\n").and_then(|l| self.render(l)) else { continue };
            match tail {
                None => self.send(&text)?,
                Some(lines) => {
                    lines.push_back(text);
                    while lines.len() > self.options.tail.unwrap_or_default() {
                        lines.pop_front();
                    }
                }
            }
        }
    }

    fn render(&self, stored: &[u8]) -> Option<Vec<u8>> {
        let line = Line::parse(stored)?;
        if self.options.since.is_some_and(|since| !line.since(since)) {
            return None;
        }
        let mut text = Vec::with_capacity(stored.len());
        if self.options.timestamps {
            text.extend_from_slice(line.time.as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(line.text);
        if !line.partial {
            text.push(b'\n');
        }
        Some(text)
    }

    fn send(&mut self, text: &[u8]) -> io::Result<()> {
        let left = self.options.limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(self.sent));
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(text.len());
        self.chunk.extend_from_slice(text.get(..take).unwrap_or_default());
        self.sent += take as u64;
        if self.chunk.len() >= CHUNK || take < text.len() {
            self.flush()?;
        }
        if take < text.len() { Err(enough()) } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        self.sender.blocking_send(std::mem::take(&mut self.chunk)).map_err(|_| enough())
    }
}
