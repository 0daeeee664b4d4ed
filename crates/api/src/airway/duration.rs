//! Durations as Go writes them, which Yoke's fields use.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration such as `30s`, `1m30s` or `500ms` (Go's `time.ParseDuration`, without a sign:
/// nothing here takes less than no time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct GoDuration(pub Duration);

const UNITS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The longest text that is read; Go has no limit.
const MAX_LENGTH: usize = 64;

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration; write it like 30s, 1m30s or 500ms");
        if text == "0" {
            return Ok(Self::default());
        }
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(wrong());
        }
        let mut rest = text;
        let mut nanos: u128 = 0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let (number, tail) = rest.split_at(end);
            let next = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(next);
            let scale =
                UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(wrong)?;
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            if whole.is_empty() && fraction.is_empty() {
                return Err(wrong());
            }
            let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
            let mut part = whole.checked_mul(scale).ok_or_else(wrong)?;
            let mut place = scale;
            for digit in fraction.chars() {
                place /= 10;
                part += u128::from(digit.to_digit(10).ok_or_else(wrong)?) * place;
            }
            nanos = nanos.checked_add(part).ok_or_else(wrong)?;
            rest = tail;
        }
        u64::try_from(nanos).map(|n| Self(Duration::from_nanos(n))).map_err(|_| wrong())
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let decimal = |value: u128, scale: u128| {
            let fraction = format!("{:0width$}", value % scale, width = scale.ilog10() as usize);
            match fraction.trim_end_matches('0') {
                "" => format!("{}", value / scale),
                fraction => format!("{}.{fraction}", value / scale),
            }
        };
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let minutes = nanos / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", decimal(nanos % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_reads_and_writes_them() {
        for (text, nanos, again) in [
            ("30s", 30_000_000_000u64, "30s"),
            ("1m30s", 90_000_000_000, "1m30s"),
            ("500ms", 500_000_000, "500ms"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("10m", 600_000_000_000, "10m0s"),
            ("0", 0, "0s"),
            (".5s", 500_000_000, "500ms"),
            ("1h0m0.25s", 3_600_250_000_000, "1h0m0.25s"),
            ("100us", 100_000, "100µs"),
        ] {
            let duration: GoDuration = text.parse().unwrap();
            assert_eq!(duration.0, Duration::from_nanos(nanos), "{text}");
            assert_eq!(duration.to_string(), again);
        }
        for wrong in ["", "5", "s", "-1s", "1 s", "1x", "1s2", "99999999999999999999h", "."] {
            assert!(wrong.parse::<GoDuration>().is_err(), "{wrong}");
        }
    }
}
