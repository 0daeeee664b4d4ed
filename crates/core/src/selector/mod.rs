//! Label and field selectors, as the query string and as JSON have them.

mod error;
mod field;
mod label;
mod name;
mod parse;

pub use self::error::SelectorError;
pub use self::field::{FieldOperator, FieldRequirement, FieldSelector};
pub use self::label::{LabelSelector, Operator, Requirement};
