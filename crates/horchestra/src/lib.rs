//! Write a reconciler once: run it natively, or as a wasm flight, on Kubernetes or plain Linux.
