use super::{StoreError, Write};

/// The largest value, in bytes: etcd's default request limit (`--max-request-bytes`), which Kubernetes users know.
pub const MAX_VALUE_BYTES: usize = 1536 * 1024;
/// The longest key, in bytes. Kubernetes' longest names stay far below.
pub const MAX_KEY_BYTES: usize = 4096;
/// The most writes of one commit.
pub const MAX_WRITES: usize = 1024;
/// The most bytes of keys and values of one commit.
pub const MAX_COMMIT_BYTES: usize = 16 * 1024 * 1024;

/// Writes that are within the bounds, sorted by key, no key twice.
#[derive(Debug)]
pub(super) struct Transaction {
    writes: Vec<Write>,
    bytes: usize,
}

impl Transaction {
    pub(super) fn new(mut writes: Vec<Write>) -> Result<Self, StoreError> {
        within("commit (writes)", writes.len(), MAX_WRITES)?;
        let mut bytes = 0;
        for write in &writes {
            within("key", write.key().len(), MAX_KEY_BYTES)?;
            bytes += write.key().len();
            if let Write::Put { value, .. } = write {
                within("value", value.len(), MAX_VALUE_BYTES)?;
                bytes += value.len();
            }
        }
        within("commit", bytes, MAX_COMMIT_BYTES)?;
        writes.sort_by(|a, b| a.key().cmp(b.key()));
        for pair in writes.windows(2) {
            if let [a, b] = pair
                && a.key() == b.key()
            {
                return Err(StoreError::Duplicate { key: a.key().clone() });
            }
        }
        Ok(Transaction { writes, bytes })
    }

    /// Keys and values together, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn into_writes(self) -> Vec<Write> {
        self.writes
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::TooLarge { what, size, limit }) } else { Ok(()) }
}
