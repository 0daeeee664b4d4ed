//! Record and replay: everything a reconciler was given and what it answered, so that a run can be
//! made again on another machine.

mod entry;
mod mask;
mod record;
mod replay;

pub use self::entry::JournalEntry;
pub use self::record::Journal;
pub(crate) use self::record::Recorder;
pub use self::replay::{Difference, Replay};
