use std::fmt;

/// A point in the history of one store.
///
/// One counter for all keys, as in etcd. A new, empty store stands at [`Revision::FIRST`]; every commit that changes
/// something takes the next number. It never turns back: not by a crash, not by a compaction. Do not compare revisions of
/// different stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// Before everything: a watch from here gets every event, unless something was compacted.
    pub const ZERO: Revision = Revision(0);
    /// Where a new store stands. Not 0, since a `resourceVersion` of "0" means "any" to Kubernetes clients.
    pub const FIRST: Revision = Revision(1);

    /// The revision after this one.
    #[must_use]
    pub fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
