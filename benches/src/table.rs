//! The table at the end.

use std::fmt;
use std::time::Duration;

/// What was measured, what was aimed at, and what it was compared with.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// A row; printed at once too, for whoever watches.
    pub fn row(&mut self, what: &str, measured: String, aim: &str, note: String) {
        println!("{what}: {measured}  (aim: {aim})  {note}");
        self.rows.push([what.to_owned(), measured, aim.to_owned(), note]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "measured", "aim", "beside it"].map(str::to_owned);
        let all: Vec<&[String; 4]> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(width);
        writeln!(f)?;
        for row in all {
            let [what, measured, aim, note] = row;
            let line = format!(
                "{what:<a$}  {measured:>b$}  {aim:>c$}  {note}",
                a = widths[0],
                b = widths[1],
                c = widths[2]
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        write!(f, "\n{cores} cores, load {}", load.trim())
    }
}

/// Samples of a time, sorted.
pub struct Samples(Vec<Duration>);

impl Samples {
    /// All of them, in any order.
    pub fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// The time that this share of the samples does not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        let at = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// As milliseconds.
pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// As microseconds.
pub fn us(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
