//! The engines that run flights, and their WASI shim.
