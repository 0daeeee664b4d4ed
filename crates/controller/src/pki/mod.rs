//! Certificates: the server's own authority, its certificate, and the admin's.

pub(crate) mod der;
mod error;
mod kubeconfig;
mod store;

pub use error::PkiError;
pub use store::Pki;
