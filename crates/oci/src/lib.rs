//! OCI image layouts, registries and safe unpacking.
