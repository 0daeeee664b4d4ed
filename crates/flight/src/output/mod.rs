//! What a flight prints: the desired state as text, and back.
//!
//! The text is Yoke's: a stream of documents or a list is one stage, a list of lists is several,
//! and the resource itself among them stands for its status. Where Yoke is lenient in a way that
//! loses objects (a malformed later document, an answer that is only a status) this is strict.

mod encode;
mod identity;
mod parse;
#[cfg(test)]
mod tests;

pub use self::encode::encode;
pub use self::identity::ANNOTATION_ANSWER;
pub use self::parse::{EMPTY, parse};
