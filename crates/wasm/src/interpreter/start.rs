//! The start function as an export: wasmi can pause an exported function, so that its time is
//! limited like that of all others, but not one that runs during instantiation.

use wasmparser::{Parser, Payload};

use crate::module::Facts;

const EXPORTS: u8 = 7;
const START: u8 = 8;
const FUNCTION: u8 = 0;

/// The same module with its start function exported instead of started, and the export's name.
/// `None` if it has no start function. The module is valid, so it exports something already.
pub(super) fn expose(module: &[u8], facts: &Facts) -> Option<(Vec<u8>, String)> {
    let payloads: Vec<_> = Parser::new(0).parse_all(module).collect::<Result<_, _>>().ok()?;
    let start = payloads.iter().find_map(|payload| match payload {
        Payload::StartSection { func, .. } => Some(*func),
        _ => None,
    })?;
    let mut name = String::from("start");
    while facts.exports.iter().any(|(export, _)| *export == name) {
        name.push('_');
    }
    let mut out = module.get(..8)?.to_vec();
    for payload in &payloads {
        let Some((id, range)) = payload.as_section() else { continue };
        let section = module.get(range)?;
        match id {
            START => {}
            EXPORTS => {
                let Payload::ExportSection(exports) = payload else { return None };
                let mut body = Vec::new();
                leb(&mut body, exports.count() + 1);
                // The count is what the section starts with; the rest stays as it is.
                let digits = section.iter().position(|byte| byte & 0x80 == 0)? + 1;
                body.extend_from_slice(section.get(digits..)?);
                leb(&mut body, u32::try_from(name.len()).ok()?);
                body.extend_from_slice(name.as_bytes());
                body.push(FUNCTION);
                leb(&mut body, start);
                push(&mut out, id, &body)?;
            }
            _ => push(&mut out, id, section)?,
        }
    }
    Some((out, name))
}

fn push(out: &mut Vec<u8>, id: u8, body: &[u8]) -> Option<()> {
    out.push(id);
    leb(out, u32::try_from(body.len()).ok()?);
    out.extend_from_slice(body);
    Some(())
}

/// An unsigned number in LEB128.
fn leb(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
