//! HTTP and TLS around the [`Api`](crate::Api).

mod accept;
mod answer;
mod body;
mod discovery;
mod exposition;
mod handler;
mod limits;
mod listen;
mod metrics;
mod path;
mod protobuf;
mod query;
mod resources;
mod stream;

pub use limits::Limits;
pub use metrics::MetricsSource;

pub(crate) use handler::Handler;
pub(crate) use listen::Listener;
pub(crate) use metrics::Metrics;
