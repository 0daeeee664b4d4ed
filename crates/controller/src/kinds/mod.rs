//! The kinds that are served: what is built in, what definitions add, and what the server says about them.

pub(crate) mod builtin;
mod columns;
mod config;
pub(crate) mod definition;
mod definition_rules;
pub(crate) mod definitions;
mod deployment;
mod discovery;
pub(crate) mod document;
pub(crate) mod document_v2;
pub(crate) mod fields;
mod job;
mod jsonpath;
pub(crate) mod kind;
pub(crate) mod namespace;
mod pod_template;
mod priority;
mod registry;
mod strategy;

pub use columns::{Cell, Column, age, duration};
pub use jsonpath::JsonPath;
pub use kind::{Endpoint, GroupKind, Kind, KindVersion, Origin, Scale, SchemaSource, Scope};
pub use registry::{Registry, Snapshot};
pub use strategy::{Plain, Propagation, Strategy};
