//! Durations as Go prints them: clients of Yoke match on the text of a timeout.

use std::time::Duration;

/// Writes a duration as Go's `time.Duration.String` does: `30ms`, `10s`, `1m0s`, `1.5s`, `0s`.
pub fn go_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let scaled = |unit: u128, name: &str| {
        let digits = unit.ilog10() as usize;
        let (whole, rest) = (nanos / unit, nanos % unit);
        let fraction = if digits == 0 { String::new() } else { format!("{rest:0digits$}") };
        match fraction.trim_end_matches('0') {
            "" => format!("{whole}{name}"),
            fraction => format!("{whole}.{fraction}{name}"),
        }
    };
    match nanos {
        0 => "0s".into(),
        1..1_000 => scaled(1, "ns"),
        1_000..1_000_000 => scaled(1_000, "µs"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "ms"),
        1_000_000_000..60_000_000_000 => scaled(1_000_000_000, "s"),
        _ => {
            let (minutes, rest) =
                (duration.as_secs() / 60, duration - Duration::from_secs(duration.as_secs() / 60 * 60));
            let seconds = match rest.subsec_nanos() {
                0 => format!("{}s", rest.as_secs()),
                nanos => format!("{}.{}s", rest.as_secs(), format!("{nanos:09}").trim_end_matches('0')),
            };
            match minutes / 60 {
                0 => format!("{minutes}m{seconds}"),
                hours => format!("{hours}h{}m{seconds}", minutes % 60),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Go's documentation and a few of its tests.
    #[test]
    fn as_go_prints() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (30_000_000, "30ms"),
            (3_300_000_000, "3.3s"),
            (10_000_000_000, "10s"),
            (60_000_000_000, "1m0s"),
            (4 * 60_000_000_000 + 5_001_000_000, "4m5.001s"),
            (5 * 3_600_000_000_000 + 6 * 60_000_000_000 + 7_001_000_000, "5h6m7.001s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
    }
}
