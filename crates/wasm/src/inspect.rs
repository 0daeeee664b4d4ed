//! What a module is and who can run it, without running it.

use horchestra_flight::contract::{HOST_MODULE, K8S_LOOKUP, K8S_REST_MAPPING, MALLOC, MALLOC_ALIAS};
use serde::Serialize;
use sha2::{Digest, Sha256};
use wasmparser::ValType;

use crate::LoadError;
use crate::module::{self, Facts};

/// The prefixes of custom sections that hold schematics: metadata and documents of a flight.
const SCHEMATICS: [&str; 2] = ["yoke.schematics:", "yoke.schematics.cmd:"];
/// The section that holds a signature, which is no schematic.
const SIGNATURE: &str = "yoke.schematics:signature";

/// What a module is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Inspection {
    /// Its size in bytes.
    pub size: u64,
    /// Its digest, in hexadecimal.
    pub sha256: String,
    /// How many functions it defines.
    pub functions: u64,
    /// The memory it starts with, in bytes.
    pub memory: u64,
    /// What it needs from its host.
    pub imports: Vec<Import>,
    /// What it offers.
    pub exports: Vec<Export>,
    /// The names of its schematics.
    pub schematics: Vec<String>,
    /// Whether it carries a signature. It is not verified here.
    pub signed: bool,
    /// All custom sections and their sizes in bytes.
    pub custom_sections: Vec<(String, u64)>,
    /// Who can run it.
    pub hosts: Vec<Verdict>,
}

impl Inspection {
    /// Whether it imports a host function, that is, whether it may read the cluster.
    pub fn looks_things_up(&self) -> bool {
        self.imports.iter().any(|import| import.module == HOST_MODULE)
    }
}

/// Something a module needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// The import module.
    pub module: String,
    /// The name in it.
    pub name: String,
    /// Its type: `(i32, i64) -> i64`, `memory`.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Something a module offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its type: `(i32) -> i64`, `memory`.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Whether a host can run the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The host.
    pub host: String,
    /// Why it cannot; empty if it can.
    pub problems: Vec<String>,
}

impl Verdict {
    /// Whether it can.
    pub fn runs(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Says what a module is and which hosts can run it. Fails only if the bytes are no core module
/// at all; a module that no host can run is described, with the reasons.
pub fn inspect(module: &[u8]) -> Result<Inspection, LoadError> {
    let facts = module::facts(module)?;
    let here = module::check(module, u64::MAX).err();
    let schematics = facts.customs.iter().filter(|(name, _)| name != SIGNATURE).filter_map(|(name, _)| {
        SCHEMATICS.iter().find_map(|prefix| name.strip_prefix(prefix)).map(str::to_owned)
    });
    Ok(Inspection {
        size: module.len() as u64,
        sha256: hex::encode(Sha256::digest(module)),
        functions: facts.functions,
        memory: facts.memory,
        schematics: schematics.collect(),
        signed: facts.customs.iter().any(|(name, _)| name == SIGNATURE),
        hosts: vec![
            Verdict { host: "Horchestra".into(), problems: horchestra(&facts, here.as_ref()) },
            Verdict { host: "Yoke".into(), problems: yoke(&facts, here.as_ref()) },
        ],
        imports: facts
            .imports
            .iter()
            .map(|i| Import { module: i.module.clone(), name: i.name.clone(), ty: i.ty.text() })
            .collect(),
        exports: facts
            .exports
            .iter()
            .map(|(name, ty)| Export { name: name.clone(), ty: ty.text() })
            .collect(),
        custom_sections: facts.customs.iter().map(|(name, size)| (name.clone(), *size as u64)).collect(),
    })
}

fn looks_up(facts: &Facts) -> bool {
    facts
        .imports
        .iter()
        .any(|i| i.module == HOST_MODULE && [K8S_LOOKUP, K8S_REST_MAPPING].contains(&i.name.as_str()))
}

fn allocates(facts: &Facts, name: &str) -> bool {
    facts.exports.iter().any(|(export, ty)| export == name && ty.is(&[ValType::I32], &[ValType::I64]))
}

/// The problems of this host: those of loading, and an allocator that a lookup will miss.
fn horchestra(facts: &Facts, error: Option<&LoadError>) -> Vec<String> {
    let mut problems: Vec<_> = error.map(LoadError::to_string).into_iter().collect();
    if looks_up(facts) && !allocates(facts, MALLOC) && !allocates(facts, MALLOC_ALIAS) {
        problems.push(format!(
            "it looks things up but exports no `{MALLOC}` of type (i32) -> i64 for the answers"
        ));
    }
    problems
}

/// The problems of Yoke's host. It loads the same modules, and knows the allocator by one name.
fn yoke(facts: &Facts, error: Option<&LoadError>) -> Vec<String> {
    let mut problems: Vec<_> = error.map(LoadError::to_string).into_iter().collect();
    if looks_up(facts) && !allocates(facts, MALLOC) {
        problems.push(if allocates(facts, MALLOC_ALIAS) {
            format!(
                "its allocator is exported as `{MALLOC_ALIAS}`, and Yoke asks for `{MALLOC}`; build it for \
                 wasm32-unknown-unknown, or rename the export"
            )
        } else {
            format!("it looks things up but exports no `{MALLOC}` of type (i32) -> i64 for the answers")
        });
    }
    if !facts.exports.iter().any(|(name, ty)| name == "memory" && ty.text() == "memory") {
        problems.push("it exports no memory".into());
    }
    problems
}
