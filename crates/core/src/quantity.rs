//! Amounts of resources: `500m`, `1.5Gi`, `12e6`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest text that is read, in bytes.
const MAX_LENGTH: usize = 64;
/// Billionths in one unit: the finest that a quantity can tell.
const NANO: i128 = 1_000_000_000;
/// Largest amount, as in Kubernetes: larger ones count as this.
const MAX: i128 = i64::MAX as i128 * NANO;
/// Most digits behind the point with a binary suffix.
const MAX_BINARY_FRACTION: usize = 18;

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// It does not follow the grammar.
    #[error(
        "{0:?} is no quantity: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Malformed(String),
    /// It is longer, or has more digits, than any amount needs.
    #[error(
        "a quantity may have {MAX_LENGTH} bytes, and {MAX_BINARY_FRACTION} digits behind the point with a binary suffix"
    )]
    TooLong,
}

/// How an amount is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// An amount of a resource, exact to a billionth: `resource.Quantity` of Kubernetes.
///
/// Finer amounts are rounded away from zero and larger ones than 2^63-1 are cut to that, as there. It prints in
/// canonical form: no fraction, the largest suffix that fits. Two quantities are equal if their amounts are, however they
/// are written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, form: Form::Decimal };

    /// Reads an amount.
    ///
    /// # Errors
    /// [`QuantityError`] if it is none.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_LENGTH {
            return Err(QuantityError::TooLong);
        }
        let malformed = || QuantityError::Malformed(text.to_owned());
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(malformed());
        }
        let (form, twos, tens) = read_suffix(suffix).ok_or_else(malformed)?;
        if twos > 0 && fraction.len() > MAX_BINARY_FRACTION {
            return Err(QuantityError::TooLong);
        }
        let magnitude = magnitude(whole, fraction, twos, tens);
        let nanos = if text.starts_with('-') { -magnitude } else { magnitude };
        Ok(Self { nanos, form })
    }

    /// So many units, written decimally.
    #[must_use]
    pub fn from_units(units: i64) -> Self {
        Self { nanos: i128::from(units).saturating_mul(NANO).clamp(-MAX, MAX), form: Form::Decimal }
    }

    /// So many thousandths, written decimally.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self { nanos: i128::from(millis) * (NANO / 1000), form: Form::Decimal }
    }

    /// So many bytes, written with binary suffixes.
    #[must_use]
    pub fn from_bytes(bytes: u64) -> Self {
        Self { nanos: (i128::from(bytes) * NANO).min(MAX), form: Form::Binary }
    }

    /// Whole units, rounded away from zero.
    #[must_use]
    pub fn units(&self) -> i64 {
        scaled(self.nanos, NANO)
    }

    /// Thousandths, rounded away from zero; the largest number if there are more.
    #[must_use]
    pub fn millis(&self) -> i64 {
        scaled(self.nanos, NANO / 1000)
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    #[must_use]
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Both together, cut to what a quantity can be. Written as the first, unless that is nothing.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let form = if self.is_zero() { other.form } else { self.form };
        Self { nanos: (self.nanos + other.nanos).clamp(-MAX, MAX), form }
    }

    /// The first without the second; may be less than nothing.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { nanos: -other.nanos, form: other.form })
    }
}

fn scaled(nanos: i128, unit: i128) -> i64 {
    let up = if nanos % unit == 0 { 0 } else { nanos.signum() };
    let whole = nanos / unit + up;
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

/// The form, and the powers of two and ten that a suffix stands for.
fn read_suffix(suffix: &str) -> Option<(Form, u32, i32)> {
    if let Some(place) = BINARY.iter().position(|known| *known == suffix) {
        let place = u32::try_from(place).ok()?;
        return Some((Form::Binary, 10 * (place + 1), 0));
    }
    if let Some((_, tens)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Form::Decimal, 0, *tens));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Whatever does not fit is as good as endless: the amount is cut, or rounded up, all the same.
    let tens = digits.parse::<i32>().unwrap_or(i32::MAX).min(10_000);
    Some((Form::Exponent, 0, if exponent.starts_with('-') { -tens } else { tens }))
}

/// Billionths, rounded up and cut to the maximum.
fn magnitude(whole: &str, fraction: &str, twos: u32, tens: i32) -> i128 {
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let Some(first) = digits.iter().position(|digit| *digit != b'0') else { return 0 };
    let significant = digits.get(first..).unwrap_or_default();
    // The power of ten of the last digit, in billionths.
    let fraction = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let mut power = tens - fraction + 9;
    let mut value: i128 = 0;
    let mut inexact = false;
    for (position, digit) in significant.iter().enumerate() {
        let left = i32::try_from(significant.len() - position).unwrap_or(i32::MAX);
        if twos == 0 && left + power <= 0 {
            // This digit and all behind it are finer than a billionth.
            inexact |= significant.get(position..).unwrap_or_default().iter().any(|digit| *digit != b'0');
            power += left;
            break;
        }
        match value.checked_mul(10).and_then(|value| value.checked_add(i128::from(digit - b'0'))) {
            Some(next) => value = next,
            None => return MAX,
        }
    }
    for _ in 0..twos / 10 {
        // With at most 18 digits behind the point this is exact, or far above the maximum.
        match value.checked_mul(1024) {
            Some(next) => value = next,
            None => return MAX,
        }
    }
    while power > 0 {
        value = match value.checked_mul(10) {
            Some(value) if value <= MAX => value,
            _ => return MAX,
        };
        power -= 1;
    }
    while power < 0 && value > 0 {
        inexact |= value % 10 != 0;
        value /= 10;
        power += 1;
    }
    (value + i128::from(inexact)).min(MAX)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANO == 0;
        if self.form == Form::Binary && whole && self.nanos.abs() >= 1024 * NANO {
            let mut value = self.nanos / NANO;
            let mut suffix = "";
            for next in BINARY {
                if value % 1024 != 0 {
                    break;
                }
                value /= 1024;
                suffix = next;
            }
            return write!(f, "{value}{suffix}");
        }
        let mut value = self.nanos;
        let mut tens = -9;
        while value % 1000 == 0 && tens < 18 {
            value /= 1000;
            tens += 3;
        }
        match self.form {
            Form::Exponent if tens == 0 => write!(f, "{value}"),
            Form::Exponent => write!(f, "{value}e{tens}"),
            Form::Decimal | Form::Binary => {
                let suffix =
                    DECIMAL.iter().find(|(_, power)| *power == tens).map_or("", |(suffix, _)| suffix);
                write!(f, "{value}{suffix}")
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From text, or from a number as YAML authors write it.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Number(number) => number.to_string(),
            _ => return Err(serde::de::Error::custom("a quantity is a string or a number")),
        };
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).expect(text).to_string()
    }

    /// From the comments and tests of `k8s.io/apimachinery/pkg/api/resource`.
    #[test]
    fn prints_canonically() {
        for (text, expected) in [
            ("0", "0"),
            ("0n", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("-1", "-1"),
            ("1.5", "1500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1000k", "1M"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("0.001", "1m"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e6", "12e6"),
            ("1e2", "100"),
            ("1.2e-3", "1200e-6"),
            ("1E", "1E"),
            ("5n", "5n"),
            ("1e-10", "1e-9"),
            ("0.1n", "1n"),
            ("1.1n", "2n"),
            ("-1.1n", "-2n"),
            ("9Ei", "9223372036854775807"),
            ("1e30", "9223372036854775807"),
            ("-1e30", "-9223372036854775807"),
            ("1e-999999999999", "1e-9"),
            ("1e999999999999", "9223372036854775807"),
            ("00.50", "500m"),
            ("1Ei", "1Ei"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for text in [
            "", "-", "+", ".", "1..2", "1.2.3", "1x", "1K", "1ki", "1KI", "1 ", " 1", "1e", "1e+", "1e1.5",
            "1mm", "1Ei2", "--1", "1i", "Ki", "é",
        ] {
            assert!(matches!(Quantity::parse(text), Err(QuantityError::Malformed(_))), "{text}");
        }
        assert_eq!(Quantity::parse(&"1".repeat(65)), Err(QuantityError::TooLong));
        assert_eq!(Quantity::parse("0.1234567890123456789Ki"), Err(QuantityError::TooLong));
    }

    #[test]
    fn counts() {
        let quantity = |text: &str| Quantity::parse(text).expect(text);
        assert_eq!(
            (quantity("1.5").units(), quantity("1.5").millis(), quantity("-1.5").units()),
            (2, 1500, -2)
        );
        assert_eq!(
            (quantity("1n").millis(), quantity("1Ki").units(), quantity("9E").millis()),
            (1, 1024, i64::MAX)
        );
        assert_eq!(quantity("1Gi").plus(&quantity("512Mi")).to_string(), "1536Mi");
        assert_eq!(quantity("0").plus(&quantity("1Ki")).to_string(), "1Ki");
        assert_eq!(quantity("100m").minus(&quantity("1")).to_string(), "-900m");
        assert_eq!(quantity("9E").plus(&quantity("9E")).to_string(), "9223372036854775807");
        assert_eq!(quantity("1000m"), quantity("1"));
        assert!(quantity("1Ki") > quantity("1k") && quantity("-1") < quantity("0"));
        assert_eq!(
            (Quantity::from_bytes(2048).to_string(), Quantity::from_millis(2500).to_string()),
            ("2Ki".into(), "2500m".into())
        );
        assert_eq!(
            serde_json::from_str::<Quantity>("1.5").map(|q| q.to_string()).ok().as_deref(),
            Some("1500m")
        );
        assert_eq!(serde_json::to_string(&quantity("2e3")).ok().as_deref(), Some("\"2e3\""));
    }

    proptest! {
        #[test]
        fn round_trips(text in "[-+]?[0-9]{0,20}[.]?[0-9]{0,12}(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})?") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let shown = quantity.to_string();
                let again = Quantity::parse(&shown).map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(again, quantity, "{} {}", text, shown);
                prop_assert_eq!(again.to_string(), shown);
            }
        }

        #[test]
        fn orders_as_numbers(a in -1_000_000_000_i64..1_000_000_000, b in -1_000_000_000_i64..1_000_000_000) {
            let (one, other) = (Quantity::from_millis(a), Quantity::from_millis(b));
            prop_assert_eq!(one.cmp(&other), a.cmp(&b));
            prop_assert_eq!(one.plus(&other).millis(), a + b);
            prop_assert_eq!(one.minus(&other).millis(), a - b);
            prop_assert_eq!(Quantity::parse(&format!("{a}m")), Ok(one));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,12}") {
            let _ = Quantity::parse(&text);
        }
    }
}
