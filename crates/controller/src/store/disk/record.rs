use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::{Event, Revision};

/// kind, number of events of the commit, created, milliseconds since 1970.
const HEADER: usize = 1 + 4 + 8 + 8;
const DELETED: u8 = 0;
const PUT: u8 = 1;

/// One event on the disk. Revision and key are the table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// How many events the commit has: shows a commit of which a part is missing.
    pub(super) events: u32,
    pub(super) created: Revision,
    pub(super) at: SystemTime,
    /// `None`: deleted.
    pub(super) value: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    pub(super) fn of(event: &'a Event, events: usize, at: SystemTime) -> Self {
        Record {
            events: u32::try_from(events).unwrap_or(u32::MAX),
            created: event.previous.as_ref().map_or(event.revision, |previous| previous.created),
            at,
            value: event.value.as_deref(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let since = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let value = self.value.unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEADER + value.len());
        bytes.push(if self.value.is_some() { PUT } else { DELETED });
        bytes.extend(self.events.to_le_bytes());
        bytes.extend(self.created.0.to_le_bytes());
        bytes.extend(millis.to_le_bytes());
        bytes.extend(value);
        bytes
    }

    /// `None` for anything that [`encode`](Self::encode) does not write.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let (events, bytes) = bytes.split_first_chunk()?;
        let (created, bytes) = bytes.split_first_chunk()?;
        let (millis, value) = bytes.split_first_chunk()?;
        let value = match *kind {
            PUT => Some(value),
            DELETED if value.is_empty() => None,
            _ => return None,
        };
        Some(Record {
            events: u32::from_le_bytes(*events),
            created: Revision(u64::from_le_bytes(*created)),
            at: UNIX_EPOCH.checked_add(Duration::from_millis(u64::from_le_bytes(*millis)))?,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn comes_back(events: u32, created: u64, millis in 0..1u64 << 50, value: Option<Vec<u8>>) {
            let record = Record {
                events,
                created: Revision(created),
                at: UNIX_EPOCH + Duration::from_millis(millis),
                value: value.as_deref(),
            };
            let bytes = record.encode();
            proptest::prop_assert_eq!(Record::decode(&bytes), Some(record));
        }

        #[test]
        fn hostile_bytes_are_refused_or_canonical(kind in 0..3u8, rest: Vec<u8>) {
            let bytes = [vec![kind], rest].concat();
            if let Some(record) = Record::decode(&bytes) {
                proptest::prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
