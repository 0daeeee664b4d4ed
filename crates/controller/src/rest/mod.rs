//! What requests do, without HTTP.

mod change;
mod create;
mod decode;
mod delete;
mod list;
pub(crate) mod meta;
mod options;
mod propose;
mod scale;
mod table;
mod watch;
mod written;

pub use change::{Change, Target};
pub use decode::Body;
pub use delete::Deleted;
pub use list::Listing;
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Selection, Subresource, WatchOptions, WriteOptions,
};
pub use table::{IncludeObject, partial, table};
pub use watch::{EventKind, Watch, WatchItem, bookmark};
pub use written::{MAX_OBJECT, Written};
