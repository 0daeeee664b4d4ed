//! What units wrote, from the journal: also of revisions and units that are gone.

use std::process::Stdio;

use jiff::Timestamp;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::marks;
use crate::log::{LogOptions, LogStream};
use crate::{Error, Result, UnitName};

/// Chunks that wait for a slow reader; then reading waits, never the workload.
const QUEUE: usize = 16;
/// The longest entry that is read; the journal cuts lines at 48 KiB, and JSON may be six times that.
const MAX_ENTRY: u64 = 1 << 20;

/// One entry as `journalctl --output=json` prints it. Source: systemd's "Journal JSON Format".
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    time: String,
    #[serde(rename = "MESSAGE", default)]
    message: Option<Message>,
}

/// A line: text, or bytes where it is not valid UTF-8.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
}

/// Begins to read. `ended` ends following: the unit has ended.
pub(super) fn open(name: &UnitName, options: LogOptions, ended: CancellationToken) -> Result<LogStream> {
    let mut command = Command::new("journalctl");
    command.args(["--quiet", "--output=json", "--output-fields=MESSAGE", "--no-pager"]);
    // Only what the workload wrote: not systemd's own lines about it.
    command.args(["_TRANSPORT=stdout"]).arg(format!("{}={name}", marks::UNIT));
    match (options.tail, options.follow) {
        (Some(lines), _) => command.arg(format!("--lines={lines}")),
        (None, true) => command.arg("--no-tail"),
        (None, false) => &mut command,
    };
    if options.follow {
        command.arg("--follow");
    }
    if let Some(since) = options.since {
        command.arg(format!("--since=@{}", since.as_second()));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let child = command.spawn().map_err(|e| Error::io("starting journalctl", e))?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(read(child, options, sender, ended));
    Ok(receiver)
}

async fn read(
    mut child: Child,
    options: LogOptions,
    sender: mpsc::Sender<Vec<u8>>,
    ended: CancellationToken,
) {
    let Some(stdout) = child.stdout.take() else { return };
    let mut reader = BufReader::new(stdout);
    let mut left = options.limit_bytes.unwrap_or(u64::MAX);
    let mut line = Vec::new();
    while left > 0 {
        line.clear();
        let mut bounded = (&mut reader).take(MAX_ENTRY);
        let next = bounded.read_until(b'\n', &mut line);
        let count = tokio::select! {
            biased;
            count = next => count,
            // What was written before the end has the time of one look to arrive.
            () = ended.cancelled(), if options.follow => break,
            () = sender.closed() => return,
        };
        if !matches!(count, Ok(count) if count > 0) {
            return;
        }
        let Some(mut text) = render(&line, &options) else { continue };
        text.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left = left.saturating_sub(text.len() as u64);
        if sender.send(text).await.is_err() {
            return;
        }
    }
}

fn render(line: &[u8], options: &LogOptions) -> Option<Vec<u8>> {
    let entry: Entry = serde_json::from_slice(line).ok()?;
    let time = Timestamp::from_microsecond(entry.time.parse().ok()?).ok()?;
    // journalctl counts in whole seconds.
    if options.since.is_some_and(|since| time < since) {
        return None;
    }
    let mut text = Vec::new();
    if options.timestamps {
        text.extend_from_slice(time.strftime("%Y-%m-%dT%H:%M:%S%.9fZ ").to_string().as_bytes());
    }
    match entry.message? {
        Message::Text(message) => text.extend_from_slice(message.as_bytes()),
        Message::Bytes(message) => text.extend_from_slice(&message),
    }
    text.push(b'\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_lines() {
        let entry = br#"{"__REALTIME_TIMESTAMP":"1700000000000001","MESSAGE":"hello","_PID":"1"}"#;
        assert_eq!(render(entry, &LogOptions::default()).unwrap(), b"hello\n");
        let stamped = LogOptions { timestamps: true, ..LogOptions::default() };
        assert_eq!(render(entry, &stamped).unwrap(), b"2023-11-14T22:13:20.000001000Z hello\n");
        let late = LogOptions {
            since: Some(Timestamp::from_second(1_700_000_001).unwrap()),
            ..LogOptions::default()
        };
        assert_eq!(render(entry, &late), None);
    }

    #[test]
    fn bytes_stay_what_they_are_and_nonsense_is_passed_over() {
        let entry = br#"{"__REALTIME_TIMESTAMP":"1","MESSAGE":[255,104,105]}"#;
        assert_eq!(render(entry, &LogOptions::default()).unwrap(), b"\xffhi\n");
        for nonsense in [&b"{}"[..], b"x", br#"{"__REALTIME_TIMESTAMP":"x","MESSAGE":"a"}"#] {
            assert_eq!(render(nonsense, &LogOptions::default()), None);
        }
    }
}
