//! Example: pipeline
