//! The store's file: one redb database.

mod create;
mod database;
mod failure;
mod load;
#[cfg(test)]
mod power_loss;
mod record;

pub(super) use database::Database;
