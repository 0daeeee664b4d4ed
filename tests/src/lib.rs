//! End-to-end tests with real parts.
