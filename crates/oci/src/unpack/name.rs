use crate::limits::MAX_NAME_BYTES;

/// What an entry's name means in a layer (OCI's layer.md, "Whiteouts"; `.wh..wh.` is AUFS' own).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// The root directory itself.
    Root,
    /// Something below it: the directories, then the name.
    Node(Vec<&'a [u8]>, &'a [u8]),
    /// Whatever lower layers have under this name is gone.
    Whiteout(Vec<&'a [u8]>, &'a [u8]),
    /// Whatever lower layers have in this directory is gone.
    Opaque(Vec<&'a [u8]>),
    /// Bookkeeping of AUFS, in which nobody is interested.
    Bookkeeping,
}

const WHITEOUT: &[u8] = b".wh.";
const AUFS: &[u8] = b".wh..wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Splits a path into names. Leading slashes and `.` mean nothing; `..` is in no honest layer.
pub(crate) fn components(path: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut parts = Vec::new();
    for part in path.split(|b| *b == b'/').filter(|p| !p.is_empty() && *p != b".") {
        if part == b".." {
            return Err("the path holds '..'".to_owned());
        }
        if part.contains(&0) {
            return Err("the path holds NUL".to_owned());
        }
        if part.len() > MAX_NAME_BYTES {
            return Err(format!("a name is longer than {MAX_NAME_BYTES} bytes (MAX_NAME_BYTES)"));
        }
        parts.push(part);
    }
    Ok(parts)
}

impl<'a> Name<'a> {
    pub(crate) fn parse(path: &'a [u8]) -> Result<Self, String> {
        if path.is_empty() {
            return Err("the name is empty".to_owned());
        }
        let mut parents = components(path)?;
        let Some(base) = parents.pop() else { return Ok(Self::Root) };
        if parents.iter().any(|p| p.starts_with(AUFS)) {
            return Ok(Self::Bookkeeping);
        }
        if parents.iter().any(|p| p.starts_with(WHITEOUT)) {
            return Err("something below a whiteout".to_owned());
        }
        if base == OPAQUE {
            return Ok(Self::Opaque(parents));
        }
        let Some(target) = base.strip_prefix(WHITEOUT) else { return Ok(Self::Node(parents, base)) };
        match target {
            b"" | b"." | b".." | WHITEOUT => {
                Err("a whiteout of nothing, or of a directory from within".to_owned())
            }
            _ if base.starts_with(AUFS) => Ok(Self::Bookkeeping),
            _ => Ok(Self::Whiteout(parents, target)),
        }
    }
}
