//! The difference between what should exist and what does, as data, before anything is written.

mod action;
mod diff;
mod make;
#[cfg(test)]
mod tests;

pub use self::action::{Action, Change, Plan, Verb};
pub use self::diff::differences;
pub use self::make::{Adopt, PlanOptions, World, plan, plan_teardown};
