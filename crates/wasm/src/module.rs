//! What a module is made of, and whether it can be a flight, before any engine sees it.

use std::fmt::Write as _;

use horchestra_flight::contract::{HOST_MODULE, K8S_LOOKUP, K8S_REST_MAPPING};
use wasmparser::{
    BinaryReaderError, CompositeInnerType, ExternalKind, FuncType, Parser, Payload, TypeRef, ValType,
    Validator, WasmFeatures,
};

use crate::LoadError;
use crate::wasi::{self, Param};

/// The default of the largest module in bytes. The largest flights known, Go programs with whole
/// Helm charts inside, have 40 to 60 MB.
pub const MAX_MODULE_BYTES: u64 = 64 << 20;
/// The most function types.
pub const MAX_TYPES: u64 = 20_000;
/// The most imports. WASI and the host functions are 48.
pub const MAX_IMPORTS: u64 = 1_000;
/// The most functions.
pub const MAX_FUNCTIONS: u64 = 200_000;
/// The most globals.
pub const MAX_GLOBALS: u64 = 20_000;
/// The most exports.
pub const MAX_EXPORTS: u64 = 20_000;
/// The most tables.
pub const MAX_TABLES: u64 = 8;
/// The most elements of one table, at the start and later.
pub const MAX_TABLE_ELEMENTS: u64 = 1 << 20;
/// The most data segments, and the most element segments.
pub const MAX_DATA_SEGMENTS: u64 = 100_000;

/// WebAssembly 2.0, what Yoke's host accepts, but for values of the host's own (`externref`): a
/// flight is never given one, and they would need a garbage collector in the engine.
const FEATURES: WasmFeatures = WasmFeatures::WASM2.difference(WasmFeatures::GC_TYPES);

const DAMAGED: &str = "it may be cut short or damaged; fetch or build it again";
const FEATURE: &str =
    "flights are WebAssembly 2.0; build without the feature named (rustc: -C target-feature=-NAME)";

/// An import as the module declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawImport {
    pub(crate) module: String,
    pub(crate) name: String,
    pub(crate) ty: Ty,
}

/// The type of an import or export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ty {
    Func(Option<FuncType>),
    Other(&'static str),
}

impl Ty {
    /// `(i32, i64) -> i64`, or what it is if no function.
    pub(crate) fn text(&self) -> String {
        let list = |types: &[ValType]| types.iter().map(ValType::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Func(Some(ty)) => {
                let mut text = format!("({})", list(ty.params()));
                match ty.results() {
                    [] => {}
                    [one] => _ = write!(text, " -> {one}"),
                    more => _ = write!(text, " -> ({})", list(more)),
                }
                text
            }
            Self::Func(None) => "function".into(),
            Self::Other(what) => (*what).into(),
        }
    }

    /// Whether it is a function of this type.
    pub(crate) fn is(&self, params: &[ValType], results: &[ValType]) -> bool {
        matches!(self, Self::Func(Some(ty)) if ty.params() == params && ty.results() == results)
    }
}

/// What a module is made of.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) imports: Vec<RawImport>,
    pub(crate) exports: Vec<(String, Ty)>,
    /// Custom sections: name and size.
    pub(crate) customs: Vec<(String, usize)>,
    /// The memory it starts with, in bytes.
    pub(crate) memory: u64,
    pub(crate) functions: u64,
}

/// Checks that bytes are a module that can be a flight here.
pub(crate) fn check(module: &[u8], max_bytes: u64) -> Result<Facts, LoadError> {
    if module.len() as u64 > max_bytes {
        return Err(LoadError::TooLarge { size: module.len() as u64, limit: max_bytes });
    }
    let facts = facts(module)?;
    Validator::new_with_features(FEATURES).validate_all(module).map_err(|e| invalid(&e))?;
    let unknown: Vec<_> =
        facts.imports.iter().filter_map(|import| problem(import).map(|why| line(import, &why))).collect();
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports { imports: unknown });
    }
    match facts.exports.iter().find(|(name, _)| name == "_start") {
        Some((_, ty)) if ty.is(&[], &[]) => Ok(facts),
        Some(_) => Err(LoadError::MissingExport {
            name: "_start of type () -> ()",
            remedy: "the one it has is something else; build a WASI command",
        }),
        None => Err(LoadError::MissingExport {
            name: "_start",
            remedy: "it was built as a library or a reactor; build a WASI command, with `main` in Go, C or Rust, or \
                     with horchestra_flight::main! in Rust",
        }),
    }
}

/// Reads what a module is made of, within the limits on counts. Does not validate code.
pub(crate) fn facts(module: &[u8]) -> Result<Facts, LoadError> {
    sniff(module)?;
    let mut read = Reading::default();
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    for payload in parser.parse_all(module) {
        let payload = payload.map_err(|e| invalid(&e))?;
        read.section(payload)?;
    }
    Ok(read.facts)
}

#[derive(Default)]
struct Reading {
    facts: Facts,
    types: Vec<Option<FuncType>>,
    functions: Vec<u32>,
    tables: u64,
}

impl Reading {
    fn section(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::TypeSection(types) => {
                bound("types", types.count(), MAX_TYPES)?;
                for group in types {
                    for ty in group.map_err(|e| invalid(&e))?.into_types() {
                        self.types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(ty),
                            _ => None,
                        });
                        bound("types", self.types.len() as u32, MAX_TYPES)?;
                    }
                }
            }
            Payload::ImportSection(imports) => {
                bound("imports", imports.count(), MAX_IMPORTS)?;
                for import in imports.into_imports() {
                    let import = import.map_err(|e| invalid(&e))?;
                    bound("imports", self.facts.imports.len() as u32 + 1, MAX_IMPORTS)?;
                    let ty = match import.ty {
                        TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                            self.functions.push(index);
                            Ty::Func(self.types.get(index as usize).cloned().flatten())
                        }
                        TypeRef::Table(_) => Ty::Other("table"),
                        TypeRef::Memory(_) => Ty::Other("memory"),
                        TypeRef::Global(_) => Ty::Other("global"),
                        TypeRef::Tag(_) => Ty::Other("tag"),
                    };
                    self.facts.imports.push(RawImport {
                        module: import.module.into(),
                        name: import.name.into(),
                        ty,
                    });
                }
            }
            Payload::FunctionSection(functions) => {
                bound("functions", functions.count(), MAX_FUNCTIONS)?;
                self.facts.functions = functions.count().into();
                for index in functions {
                    self.functions.push(index.map_err(|e| invalid(&e))?);
                }
            }
            Payload::TableSection(tables) => {
                bound("tables", tables.count(), MAX_TABLES)?;
                self.tables = tables.count().into();
                for table in tables {
                    let initial = table.map_err(|e| invalid(&e))?.ty.initial;
                    if initial > MAX_TABLE_ELEMENTS {
                        let (what, limit) = ("elements in a table", MAX_TABLE_ELEMENTS);
                        return Err(LoadError::TooMany { what, count: initial, limit });
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    let pages = memory.map_err(|e| invalid(&e))?.initial;
                    self.facts.memory = self.facts.memory.saturating_add(pages.saturating_mul(64 << 10));
                }
            }
            Payload::GlobalSection(globals) => bound("globals", globals.count(), MAX_GLOBALS)?,
            Payload::ElementSection(segments) => {
                bound("element segments", segments.count(), MAX_DATA_SEGMENTS)?
            }
            Payload::DataSection(segments) => bound("data segments", segments.count(), MAX_DATA_SEGMENTS)?,
            Payload::ExportSection(exports) => {
                bound("exports", exports.count(), MAX_EXPORTS)?;
                for export in exports {
                    let export = export.map_err(|e| invalid(&e))?;
                    let ty = match export.kind {
                        ExternalKind::Func | ExternalKind::FuncExact => {
                            let ty = self.functions.get(export.index as usize);
                            Ty::Func(ty.and_then(|index| self.types.get(*index as usize).cloned().flatten()))
                        }
                        ExternalKind::Table => Ty::Other("table"),
                        ExternalKind::Memory => Ty::Other("memory"),
                        ExternalKind::Global => Ty::Other("global"),
                        ExternalKind::Tag => Ty::Other("tag"),
                    };
                    self.facts.exports.push((export.name.into(), ty));
                }
            }
            Payload::CustomSection(custom) => {
                bound("custom sections", self.facts.customs.len() as u32 + 1, MAX_EXPORTS)?;
                self.facts.customs.push((custom.name().into(), custom.data().len()));
            }
            _ => {}
        }
        Ok(())
    }
}

fn bound(what: &'static str, count: u32, limit: u64) -> Result<(), LoadError> {
    if u64::from(count) > limit {
        return Err(LoadError::TooMany { what, count: count.into(), limit });
    }
    Ok(())
}

fn invalid(error: &BinaryReaderError) -> LoadError {
    let cause = error.to_string();
    let remedy =
        if ["enabled", "not supported", "disabled", "disallowed"].iter().any(|word| cause.contains(word)) {
            FEATURE
        } else {
            DAMAGED
        };
    LoadError::Invalid { cause, remedy }
}

/// Says what bytes are that do not start as a core module does.
fn sniff(module: &[u8]) -> Result<(), LoadError> {
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    let not_wasm = |found: String, remedy| Err(LoadError::NotWasm { found, remedy });
    match module {
        m if m.starts_with(MODULE) => Ok(()),
        m if m.starts_with(COMPONENT) => Err(LoadError::Component),
        [] => not_wasm("it is empty".into(), "check where it comes from"),
        [0x1f, 0x8b, ..] => not_wasm("it is compressed with gzip".into(), "unpack it first"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => not_wasm("it is compressed with zstd".into(), "unpack it first"),
        m if m.starts_with(b"\x7fELF") => {
            not_wasm("it is a native program".into(), "build it for wasm32-unknown-unknown")
        }
        m if m.trim_ascii_start().starts_with(b"(") => not_wasm(
            "it is WebAssembly text".into(),
            "turn it into a binary with wat2wasm or wasm-tools parse",
        ),
        m if m.trim_ascii_start().starts_with(b"<") => {
            not_wasm("it is a web page".into(), "the address is wrong or needs a login")
        }
        m if MODULE.starts_with(m) => not_wasm(format!("it ends after {} bytes", m.len()), DAMAGED),
        [b'\0', b'a', b's', b'm', ..] => {
            not_wasm("it has an unknown version".into(), "build a core module of version 1")
        }
        m => {
            not_wasm(format!("it starts with {:02x?}", m.get(..4).unwrap_or(m)), "check where it comes from")
        }
    }
}

fn line(import: &RawImport, why: &str) -> String {
    format!("{}.{} {}: {why}", import.module, import.name, import.ty.text())
}

/// Why this host cannot provide an import, if it cannot.
pub(crate) fn problem(import: &RawImport) -> Option<String> {
    const I32: ValType = ValType::I32;
    const I64: ValType = ValType::I64;
    let expect = |params: &[ValType], results: &[ValType]| {
        let expected = Ty::Func(Some(FuncType::new(params.iter().copied(), results.iter().copied())));
        (import.ty != expected).then(|| format!("this host has it with the type {}", expected.text()))
    };
    match (import.module.as_str(), import.name.as_str()) {
        (HOST_MODULE, K8S_LOOKUP) => expect(&[I32, I64, I64, I64, I64], &[I64]),
        (HOST_MODULE, K8S_REST_MAPPING) => expect(&[I32, I64, I64], &[I64]),
        (HOST_MODULE, _) => {
            Some("a host function of a newer host or another product; update this one".into())
        }
        (wasi::MODULE, name) => match wasi::signature(name) {
            None => Some("not a function of WASI preview 1".into()),
            Some((params, result)) => {
                let params: Vec<_> = params
                    .iter()
                    .map(|p| match p {
                        Param::u32 => I32,
                        Param::u64 => I64,
                    })
                    .collect();
                expect(&params, if result { &[I32] } else { &[] })
            }
        },
        ("wasi_unstable", _) => Some("an older WASI; build with a toolchain for WASI preview 1".into()),
        (module, _) if module.starts_with("wasi:") => {
            Some("WASI preview 2; build for wasm32-unknown-unknown or wasm32-wasip1".into())
        }
        (module, _)
            if module.starts_with("__wbindgen") || module.starts_with("wbg") || module.starts_with("./") =>
        {
            Some(
                "from wasm-bindgen, for a web page or Node; build without it, and without crates that use it"
                    .into(),
            )
        }
        ("gojs" | "go", _) => Some("from Go for a web page; build with GOOS=wasip1".into()),
        ("env", _) => {
            Some("a function that nothing defined when the module was linked, or Emscripten's host".into())
        }
        _ => Some("no flight host has this module".into()),
    }
}
