//! Who owns which field: `metadata.managedFields`, as server-side apply keeps it.

mod element;
mod entry;
mod fields_v1;
mod set;

pub use self::element::PathElement;
pub use self::entry::{ManagedFields, ManagerEntry, Operation};
pub use self::set::FieldSet;
