//! The limits of one evaluation as flags.

use std::time::Duration;

use horchestra_flight::contract::Limits;

/// The bounds of the run. Each has an error that says how to raise it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Wall clock, lookups included: `500ms`, `10s`, `2m`; `0` is no limit
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    /// Memory in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_memory: u64,
    /// Output in KiB
    #[arg(long, value_name = "KIB", default_value_t = 16 << 10, value_parser = clap::value_parser!(u64).range(1..=64 << 10))]
    max_stdout: u64,
    /// Log in KiB; more is dropped with a note
    #[arg(long, value_name = "KIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(0..=64 << 10))]
    max_stderr: u64,
    /// How often it may ask the cluster
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    max_lookups: u32,
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> Limits {
        // At most 64 MiB each, so they fit anywhere.
        let kib = |n: u64| usize::try_from(n << 10).unwrap_or(usize::MAX);
        Limits {
            timeout: if self.timeout.is_zero() { Duration::MAX } else { self.timeout },
            memory: self.max_memory << 20,
            stdout: kib(self.max_stdout),
            stderr: kib(self.max_stderr),
            lookups: self.max_lookups,
        }
    }
}

/// A number and its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write a number and its unit, as in 500ms, 10s, 2m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for text in ["", "10", "s", "-1s", "1 s", "1e30h", "1.2.3s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
