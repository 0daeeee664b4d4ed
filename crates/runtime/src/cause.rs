//! Why a run happens.

use std::fmt;

use horchestra_core::ObjectRef;
use serde::Serialize;

/// One reason for a run. Reasons of several events that became one run are all kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Cause {
    /// An object appeared: the resource itself, one it owns, or one it had looked for.
    Created(ObjectRef),
    /// An object changed.
    Changed(ObjectRef),
    /// An object is gone.
    Deleted(ObjectRef),
    /// Something it asked about time has turned true, or its drift interval is over.
    Time,
    /// An earlier run could not finish what it had planned.
    Unfinished,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(o) => write!(f, "{o} created"),
            Self::Changed(o) => write!(f, "{o} changed"),
            Self::Deleted(o) => write!(f, "{o} deleted"),
            Self::Time => f.write_str("time passed"),
            Self::Unfinished => f.write_str("earlier run unfinished"),
        }
    }
}
