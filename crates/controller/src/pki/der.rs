//! As much of X.509 as is needed: who a certificate is for, and when it ends.
//!
//! What is read here has been verified against our authority, or was written by us; it is still read with care.

/// Subject and end of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Identity {
    /// Common name.
    pub(crate) name: String,
    /// Organisations.
    pub(crate) organisations: Vec<String>,
    /// End of validity, in seconds since 1970.
    pub(crate) not_after: i64,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Tag, content, and what follows.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0_usize, |n, b| (n << 8) | usize::from(*b)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn expect(input: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(input)?;
    (tag == wanted).then_some((content, rest))
}

/// The identity in a DER certificate, or `None` when it is no certificate.
pub(crate) fn identity(certificate: &[u8]) -> Option<Identity> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut at, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(at, VERSION) {
        at = rest;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        let (_, _, rest) = element(at)?;
        at = rest;
    }
    let (validity, at) = expect(at, SEQUENCE)?;
    let (_, _, not_after) = element(validity)?;
    let (tag, text, _) = element(not_after)?;
    let not_after = time(tag, std::str::from_utf8(text).ok()?)?;
    let (mut subject, _) = expect(at, SEQUENCE)?;
    let mut out = Identity { not_after, ..Identity::default() };
    while !subject.is_empty() {
        let (mut set, rest) = expect(subject, SET)?;
        subject = rest;
        while !set.is_empty() {
            let (attribute, rest) = expect(set, SEQUENCE)?;
            set = rest;
            let (oid, value) = expect(attribute, OID)?;
            let (_, text, _) = element(value)?;
            let text = std::str::from_utf8(text).ok()?.to_owned();
            if oid == COMMON_NAME {
                out.name = text;
            } else if oid == ORGANISATION {
                out.organisations.push(text);
            }
        }
    }
    Some(out)
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn time(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |index: usize| rest.get(index * 2..index * 2 + 2)?.parse::<i8>().ok();
    let moment =
        jiff::civil::DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(time(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for bad in ["", "Z", "7001010000Z", "701301000000Z", "70010100000\u{fc}Z"] {
            assert_eq!(time(UTC_TIME, bad), None, "{bad}");
        }
    }

    #[test]
    fn garbage_is_no_certificate() {
        for bad in [
            &[][..],
            &[0x30],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x02, 0x30, 0x00],
            &[0x30, 0x80],
        ] {
            assert_eq!(identity(bad), None);
        }
    }
}
