//! The examples of Kubernetes' documentation, and properties.
