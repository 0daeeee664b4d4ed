//! What one client, and all together, may use.

use std::time::Duration;

/// Bounds of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body. As in Kubernetes.
    pub body: usize,
    /// Bytes of a request's headers.
    pub headers: u32,
    /// Requests at once on one HTTP/2 connection.
    pub streams: u32,
    /// Connections at once.
    pub connections: usize,
    /// Requests at once, watches apart. More are answered with 429.
    pub requests: usize,
    /// Watches at once. More are answered with 429.
    pub watches: usize,
    /// For the TLS handshake, and for the headers of a request.
    pub handshake: Duration,
    /// For one request, watches apart.
    pub request: Duration,
    /// Between pings on HTTP/2 connections; a peer that does not answer in the same time is gone.
    pub ping: Duration,
    /// For connections to finish when the server goes.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: crate::rest::MAX_OBJECT,
            headers: 64 * 1024,
            streams: 250,
            connections: 4096,
            requests: 1024,
            watches: 16_384,
            handshake: Duration::from_secs(10),
            request: Duration::from_secs(60),
            ping: Duration::from_secs(30),
            shutdown: Duration::from_secs(3),
        }
    }
}
