//! What a running unit records about itself: extra fields of its log, which are properties of the
//! unit as well. So one reads from systemd alone what a unit was made from, and from the journal
//! which lines are a unit's, also of units that are gone.

use crate::UnitName;

/// The unit's name. Its value finds a unit's lines in the journal.
pub(super) const UNIT: &str = "HORCHESTRA_UNIT";
/// What it was made from.
const REVISION: &str = "HORCHESTRA_REVISION";

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) name: UnitName,
    pub(super) revision: String,
}

impl Marks {
    /// As log fields: `NAME=VALUE`, bytes.
    pub(super) fn fields(&self) -> Vec<Vec<u8>> {
        [(UNIT, self.name.as_str()), (REVISION, &self.revision)]
            .map(|(name, value)| format!("{name}={value}").into_bytes())
            .into()
    }

    /// From log fields; none if the unit is not one of ours.
    pub(super) fn of(fields: &[Vec<u8>]) -> Option<Self> {
        let value = |name: &str| {
            fields.iter().find_map(|field| {
                let (key, value) = std::str::from_utf8(field).ok()?.split_once('=')?;
                (key == name).then(|| value.to_owned())
            })
        };
        Some(Self { name: UnitName::new(&value(UNIT)?).ok()?, revision: value(REVISION)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let marks = Marks { name: UnitName::new("default_web").unwrap(), revision: "sha256:ab=c".into() };
        assert_eq!(Marks::of(&marks.fields()), Some(marks));
        assert_eq!(Marks::of(&[b"OTHER=1".to_vec(), b"\xff".to_vec()]), None);
        assert_eq!(Marks::of(&[b"HORCHESTRA_UNIT=../x".to_vec(), b"HORCHESTRA_REVISION=1".to_vec()]), None);
    }
}
