//! Every bound of this crate, by name.

/// Largest manifest, index or image configuration, in bytes. Registries commonly refuse more than 4 MiB.
pub const MAX_DOCUMENT_BYTES: u64 = 4 << 20;
/// Most entries of one index.
pub const MAX_INDEX_ENTRIES: usize = 1024;
/// How deep indexes may be nested.
pub const MAX_INDEX_DEPTH: usize = 4;
/// Most layers of one image.
pub const MAX_LAYERS: usize = 500;
/// Largest compressed layer, in bytes.
pub const MAX_LAYER_BYTES: u64 = 16 << 30;
/// Largest wasm module of a flight after decompression, in bytes.
pub const MAX_MODULE_BYTES: u64 = 64 << 20;
/// Largest window of a zstd frame, as a power of two: 32 MiB, what `zstd -20` uses. It bounds memory.
pub const MAX_ZSTD_WINDOW_LOG: u32 = 25;

/// Most bytes that one image may unpack to, counted as file sizes.
pub const MAX_UNPACKED_BYTES: u64 = 16 << 30;
/// Most archive entries of one image, all layers together.
pub const MAX_ENTRIES: u64 = 2_000_000;
/// Longest path of an entry or target of a link, in bytes (Linux' PATH_MAX with its final NUL).
pub const MAX_PATH_BYTES: usize = 4095;
/// Longest single name, in bytes (Linux' NAME_MAX).
pub const MAX_NAME_BYTES: usize = 255;
/// Deepest directory, counted in the tree as it is on disk. Walks use one descriptor per level.
pub const MAX_DEPTH: u32 = 256;
/// Most bytes of extended headers (PAX records, GNU long names) of one entry.
pub const MAX_EXTENDED_BYTES: u64 = 256 << 10;
/// Most segments of a sparse file.
pub const MAX_SPARSE_SEGMENTS: usize = 65_536;
/// Most extended attributes of one entry.
pub const MAX_XATTRS: usize = 64;

/// Most environment variables of an image.
pub const MAX_ENV: usize = 1024;
/// Most arguments of an entrypoint or command.
pub const MAX_ARGS: usize = 4096;
/// Most bytes of an environment or a command line together: half of what Linux' exec allows by default.
pub const MAX_EXEC_BYTES: usize = 1 << 20;
/// Most labels, volumes or exposed ports of an image.
pub const MAX_CONFIG_MAP: usize = 1024;
/// Most bytes of the image's user and group files that are read to resolve a name.
pub const MAX_PASSWD_BYTES: u64 = 1 << 20;

/// What one unpacking may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all files together, and of each decompressed layer.
    pub unpacked_bytes: u64,
    /// Most entries of all layers together.
    pub entries: u64,
    /// Most layers.
    pub layers: usize,
    /// Deepest directory.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unpacked_bytes: MAX_UNPACKED_BYTES,
            entries: MAX_ENTRIES,
            layers: MAX_LAYERS,
            depth: MAX_DEPTH,
        }
    }
}
