//! Example: app
