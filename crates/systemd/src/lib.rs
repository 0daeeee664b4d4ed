//! A Linux node: OCI images as supervised workloads.
