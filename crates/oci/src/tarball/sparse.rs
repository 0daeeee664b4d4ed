use super::number;
use crate::limits::MAX_SPARSE_SEGMENTS;

/// The segments of an old GNU sparse file, as its headers list them (GNU tar's manual, "Sparse Formats").
#[derive(Debug, Default)]
pub(crate) struct Map {
    segments: Vec<(u64, u64)>,
    stored: u64,
}

/// One descriptor: 12 bytes of offset, 12 bytes of length.
pub(crate) const DESCRIPTOR: usize = 24;

impl Map {
    /// Adds descriptors. They come in order, do not overlap, and each but the last is a multiple of a block.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        for descriptor in bytes.chunks_exact(DESCRIPTOR) {
            let (offset, length) = descriptor.split_at(DESCRIPTOR / 2);
            if offset.first() == Some(&0) || length.first() == Some(&0) {
                continue;
            }
            let malformed = "malformed map of a sparse file";
            let offset = number::unsigned(offset).ok_or(malformed)?;
            let length = number::unsigned(length).ok_or(malformed)?;
            let end = self.segments.last().map_or(0, |(o, l)| o.saturating_add(*l));
            if offset < end || !self.stored.is_multiple_of(512) || offset.checked_add(length).is_none() {
                return Err(malformed.to_owned());
            }
            self.stored = self.stored.checked_add(length).ok_or(malformed)?;
            self.segments.push((offset, length));
            if self.segments.len() > MAX_SPARSE_SEGMENTS {
                return Err(format!("more than {MAX_SPARSE_SEGMENTS} segments (MAX_SPARSE_SEGMENTS)"));
            }
        }
        Ok(())
    }

    /// The segments, where they add up to what the header says.
    pub(crate) fn finish(self, stored: u64, size: u64) -> Result<Vec<(u64, u64)>, String> {
        let end = self.segments.last().map_or(0, |(o, l)| o.saturating_add(*l));
        if self.stored != stored || end > size {
            return Err("the map of the sparse file contradicts its sizes".to_owned());
        }
        Ok(self.segments)
    }
}
