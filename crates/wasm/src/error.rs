//! What can be wrong with a module, and with the place where compiled ones are kept.

use std::path::PathBuf;

/// Why a module cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are something else.
    #[error("not a WebAssembly module: {found}; {remedy}")]
    NotWasm {
        /// What they look like.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A component where a core module is needed.
    #[error(
        "this is a WebAssembly component, and a flight is a core module; build it for wasm32-unknown-unknown or \
         wasm32-wasip1 instead of wasm32-wasip2, without `wasm-tools component new`"
    )]
    Component,
    /// The module is larger than the engine's limit.
    #[error(
        "the module has {size} bytes, more than the limit of {limit}; build it for size (opt-level = \"s\", lto, \
         strip) or raise EngineOptions::max_module"
    )]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The module has more of something than is allowed.
    #[error(
        "the module has {count} {what}, more than the limit of {limit}; such a module is not a sensible flight"
    )]
    TooMany {
        /// What it has too many of, in the plural.
        what: &'static str,
        /// How many.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// The module is damaged, cut short, or uses a feature beyond WebAssembly 2.0.
    #[error("the module is not valid: {cause}; {remedy}")]
    Invalid {
        /// The validator's words, with the offset.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Imports that no flight host has, or that have another type here.
    #[error("the module imports what this host does not have:{}", list(imports))]
    UnknownImports {
        /// One entry for each import: its name, and where it comes from or what is wrong.
        imports: Vec<String>,
    },
    /// The module has no `_start`.
    #[error("the module does not export {name}; {remedy}")]
    MissingExport {
        /// The export.
        name: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The engine refuses a module that is valid.
    #[error("{engine} cannot load the module: {cause}")]
    Engine {
        /// Which engine.
        engine: String,
        /// Its words.
        cause: String,
    },
}

fn list(items: &[String]) -> String {
    items.iter().fold(String::new(), |text, item| text + "\n  " + item)
}

/// Why a cache directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The directory could be changed by somebody else, who could then run native code here.
    #[error("{path} is not safe for compiled modules: {problem}; {remedy}")]
    Unsafe {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The file system said no.
    #[error("{path}: {source}; give another cache directory, or none to compile at each start")]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Its words.
        source: std::io::Error,
    },
}
