use jiff::Timestamp;

/// One stored line, as container runtimes store them: `TIME STREAM TAG TEXT\n`, where the tag is `P` for a part
/// of a longer line and `F` for its end (Kubernetes, design proposal "CRI logging").
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub time: &'a str,
    pub partial: bool,
    pub text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parses a line without its newline.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = bytes.splitn(4, |b| *b == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?;
        let _stream = parts.next()?;
        let partial = parts.next()? == b"P";
        Some(Self { time, partial, text: parts.next()? })
    }

    /// Whether it was written at or after a time.
    pub(super) fn since(&self, since: Timestamp) -> bool {
        self.time.parse::<Timestamp>().is_ok_and(|t| t >= since)
    }
}
