//! Digests that say whether two things are the same, and nothing about what they are.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Random bytes of this node. A digest without them would give away a short secret to whoever can
/// read the digest and try.
#[derive(Clone)]
pub(crate) struct Salt([u8; 32]);

impl Salt {
    /// Reads the salt of a node, or makes it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(path.display().to_string(), e);
        let mut salt = [0; 32];
        match std::fs::File::open(path) {
            Ok(mut file) => file.read_exact(&mut salt).map_err(failed)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                std::fs::File::open("/dev/urandom")
                    .and_then(|mut f| f.read_exact(&mut salt))
                    .map_err(failed)?;
                let part = path.with_extension("part");
                let _ = std::fs::remove_file(&part);
                let options =
                    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
                options.and_then(|mut file| file.write_all(&salt)).map_err(failed)?;
                std::fs::rename(&part, path).map_err(failed)?;
            }
            Err(e) => return Err(failed(e)),
        }
        Ok(Self(salt))
    }

    /// A digest of all parts.
    pub(crate) fn digest(&self, parts: &[&[u8]]) -> String {
        let mut digest = Sha256::new_with_prefix(self.0);
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        hex::encode(digest.finalize().get(..16).unwrap_or_default())
    }
}

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_node_gives_the_same_digest_and_another_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        let digest = |path: &Path| Salt::open(path).unwrap().digest(&[b"a", b"b"]);
        assert_eq!(digest(&one), digest(&one));
        assert_ne!(digest(&one), digest(&other));
        assert_ne!(Salt::open(&one).unwrap().digest(&[b"ab"]), digest(&one));
    }
}
