//! The formats that Kubernetes checks. Others are annotations.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A `format` that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Int32,
    Int64,
    DateTime,
    Date,
    Duration,
    Byte,
    Ipv4,
    Ipv6,
    Cidr,
    Uuid,
    Uri,
    Hostname,
    Email,
    Mac,
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "date-time" | "datetime" => Self::DateTime,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "byte" => Self::Byte,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "uuid" => Self::Uuid,
            "uri" => Self::Uri,
            "hostname" => Self::Hostname,
            "email" => Self::Email,
            "mac" => Self::Mac,
            _ => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Duration => "duration",
            Self::Byte => "byte",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Uuid => "uuid",
            Self::Uri => "uri",
            Self::Hostname => "hostname",
            Self::Email => "email",
            Self::Mac => "mac",
        }
    }

    pub(super) fn allows_number(self, number: f64) -> bool {
        match self {
            Self::Int32 => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number),
            Self::Int64 => (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number),
            _ => true,
        }
    }

    pub(super) fn allows_text(self, text: &str) -> bool {
        match self {
            Self::Int32 | Self::Int64 => true,
            Self::DateTime => is_date_time(text),
            Self::Date => is_date(text),
            Self::Duration => is_duration(text),
            Self::Byte => is_base64(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Uuid => is_uuid(text),
            Self::Uri => is_uri(text),
            Self::Hostname => is_hostname(text),
            Self::Email => is_email(text),
            Self::Mac => is_mac(text),
        }
    }
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let fits = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: `2006-01-02T15:04:05.999Z`.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let Some(at) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = time.split_at(at);
    let zone_fits = match zone.strip_prefix(['+', '-']) {
        None => zone.len() == 1,
        Some(offset) => offset.split_once(':').is_some_and(|(hours, minutes)| {
            number(hours, 2).is_some_and(|h| h < 24) && number(minutes, 2).is_some_and(|m| m < 60)
        }),
    };
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, rest)| (clock, Some(rest)));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return false };
    is_date(date)
        && zone_fits
        && fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        && number(hours, 2).is_some_and(|h| h < 24)
        && number(minutes, 2).is_some_and(|m| m < 60)
        && number(seconds, 2).is_some_and(|s| s <= 60)
}

/// Go's durations, `1h30m`, `-1.5s`, `0`; and the spelt ones that kube-openapi also takes: `3 days`.
fn is_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "0" {
        return true;
    }
    let mut rest = unsigned;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(digits);
        let unit = after.trim_start().find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
        let after = after.trim_start();
        let (unit, after) = after.split_at(unit.unwrap_or(after.len()));
        let amount_fits =
            amount.bytes().filter(|b| *b == b'.').count() < 2 && amount.bytes().any(|b| b.is_ascii_digit());
        let known = [
            "ns",
            "us",
            "µs",
            "μs",
            "ms",
            "s",
            "m",
            "h",
            "d",
            "w",
            "nanosecond",
            "nanoseconds",
            "second",
            "seconds",
            "minute",
            "minutes",
            "hour",
            "hours",
            "day",
            "days",
            "week",
            "weeks",
        ];
        if !amount_fits || !known.contains(&unit) {
            return false;
        }
        parts += 1;
        rest = after.trim_start();
    }
    parts > 0
}

fn is_base64(text: &str) -> bool {
    let bytes: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    let data = bytes.len() - padding;
    bytes.len().is_multiple_of(4)
        && padding <= 2
        && bytes.iter().take(data).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    bits.bytes().all(|b| b.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_uuid(text: &str) -> bool {
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let dashes = text.char_indices().filter(|(_, c)| *c == '-').all(|(at, _)| matches!(at, 8 | 13 | 18 | 23));
    hex.len() == 32 && dashes && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_uri(text: &str) -> bool {
    if text.starts_with('/') {
        return !text.contains(|c: char| c.is_control() || c == ' ');
    }
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.contains(|c: char| c.is_control() || c == ' ')
    })
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    text.len() <= 255 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, host)| {
        !local.is_empty()
            && !local.contains(|c: char| c.is_whitespace() || c.is_control())
            && is_hostname(host)
    })
}

fn is_mac(text: &str) -> bool {
    let fits = |separator: char, digits: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let bytes = parts.len() * digits / 2;
        matches!(bytes, 6 | 8 | 20)
            && parts.iter().all(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    fits(':', 2) || fits('-', 2) || fits('.', 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_right_from_wrong() {
        let cases: &[(Format, &[&str], &[&str])] = &[
            (
                Format::DateTime,
                &["2006-01-02T15:04:05Z", "2024-02-29T00:00:00.123456+02:00", "2016-12-31T23:59:60Z"],
                &[
                    "",
                    "2006-01-02",
                    "2006-01-02 15:04:05Z",
                    "2023-02-29T00:00:00Z",
                    "2006-01-02T15:04:05",
                    "2006-01-02T24:00:00Z",
                    "2006-01-02T15:04:05.Z",
                ],
            ),
            (Format::Date, &["2006-01-02", "2000-02-29"], &["2006-1-2", "1900-02-29", "2006-13-01", "x"]),
            (
                Format::Duration,
                &["1h30m", "0", "-1.5s", "3 days", "10us"],
                &["", "1", "h", "1x", "1..5s", "-"],
            ),
            (Format::Byte, &["", "aGk=", "YQ==", "YWJj"], &["a", "a===", "a-b=", "=aaa"]),
            (Format::Ipv4, &["10.0.0.1"], &["10.0.0", "::1", "256.0.0.1"]),
            (Format::Ipv6, &["::1", "fe80::1"], &["10.0.0.1", ":::"]),
            (Format::Cidr, &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/+8"]),
            (
                Format::Uuid,
                &["123e4567-e89b-12d3-a456-426614174000"],
                &["123e4567", "123e4567-e89b-12d3-a456-42661417400g"],
            ),
            (Format::Uri, &["https://example.com/a", "mailto:a@b.c"], &["example", "http://a b", ":x"]),
            (Format::Hostname, &["example.com", "a"], &["", "-a", "a..b", "a b"]),
            (Format::Email, &["a@example.com"], &["a", "@b", "a@"]),
            (Format::Mac, &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00", "zz:00:5e:00:53:01"]),
        ];
        for (format, right, wrong) in cases {
            for text in *right {
                assert!(format.allows_text(text), "{format:?} {text}");
            }
            for text in *wrong {
                assert!(!format.allows_text(text), "{format:?} {text}");
            }
            assert_eq!(Format::named(format.name()), Some(*format));
        }
        assert!(
            Format::Int32.allows_number(-2_147_483_648.0) && !Format::Int32.allows_number(2_147_483_648.0)
        );
        assert!(!Format::Int64.allows_number(1e19));
    }
}
