//! The API server that kubectl talks to, and its revisioned store.

pub mod admission;
mod api;
pub mod auth;
mod cache;
mod collector;
mod error;
pub mod http;
mod in_process;
pub mod kinds;
mod load;
pub mod lower;
mod name;
mod object;
pub mod pki;
pub mod rest;
mod server;
pub mod store;
mod user;

pub use api::Api;
pub use error::{ApiError, Cause, Subject};
pub use in_process::InProcess;
pub use name::NameRule;
pub use object::{Object, RevisionNumber};
pub use server::{Controller, Options, StartError};
pub use user::User;

/// The Kubernetes version that clients are told.
pub const VERSION: &str = "v1.36.0+horchestra";
