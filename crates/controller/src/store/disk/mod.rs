//! The store's file: one redb database.

mod create;
mod database;
mod failure;
mod load;
mod record;

pub(super) use database::Database;
