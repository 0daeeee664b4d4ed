//! OCI image layouts, safe unpacking, and the artifacts that carry flights.
//!
//! Everything read here was written by someone else: a layout, a manifest, a layer, an image's configuration.
//! It is hostile until it has been parsed into one of the types of this crate, and every amount is bounded
//! by a named constant of [`limits`].
//!
//! The code is blocking. Async callers run it on a blocking thread.

mod artifact;
mod builder;
mod compression;
mod config;
mod descriptor;
mod digest;
mod error;
mod image;
mod layout;
pub mod limits;
mod manifest;
mod media;
mod platform;
mod reference;
mod tarball;
mod unpack;
mod users;

pub use builder::{FileSpec, ImageSpec, LayoutBuilder};
pub use compression::Compression;
pub use config::{EnvVar, ImageConfig, ImagePath, StopSignal, UserName, UserSpec};
pub use descriptor::Descriptor;
pub use digest::{Digest, Verified};
pub use error::Error;
pub use image::{Image, Layer};
pub use layout::{Layout, Selector};
pub use limits::Limits;
pub use media::MediaType;
pub use platform::Platform;
pub use reference::{ImageRef, Source};
pub use unpack::{Options, Owners, Report, remove_tree, unpack};
pub use users::{ResolvedUser, resolve_user};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
