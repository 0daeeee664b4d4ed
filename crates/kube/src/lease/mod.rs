//! Leader election by a Lease: of several processes, one at a time leads.

mod election;
mod leadership;
mod timing;

pub use self::leadership::{Leadership, LeaseOptions};
pub use self::timing::Timing;
