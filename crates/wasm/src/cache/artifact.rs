//! Compiled modules as files that nobody else can have written.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The length of the key in bytes.
pub(super) const KEY: usize = 32;
/// What a file starts with, so that another layout is never taken for this one.
const MAGIC: &[u8] = b"horchestra compiled module 1\n";
/// The length of the authentication code in bytes.
const CODE: usize = 32;

/// Native code that this host compiled, and that nobody has changed since.
///
/// Made only by this module: from what an engine has just compiled, or from bytes in memory whose
/// authentication code was checked over those bytes.
#[derive(Debug, Clone, Copy)]
pub struct Verified<'a>(&'a [u8]);

impl<'a> Verified<'a> {
    /// The compiled module.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// What an engine has compiled, before it has left this process.
#[derive(Debug)]
pub(super) struct Compiled(Vec<u8>);

impl Compiled {
    /// Compiles.
    pub(super) fn new(aot: &dyn crate::Aot, module: &[u8]) -> Result<Self, crate::LoadError> {
        aot.compile(module).map(Self)
    }

    pub(super) fn verified(&self) -> Verified<'_> {
        Verified(&self.0)
    }

    /// The file for it. The name is part of what is authenticated: a file that is good for one
    /// module is not good for another.
    pub(super) fn seal(&self, key: &[u8; KEY], name: &str) -> Vec<u8> {
        let code = mac(key, name, &self.0).finalize().into_bytes();
        [MAGIC, &code, &self.0].concat()
    }
}

/// Reads a file that [`Compiled::seal`] made with this key for this name, and nothing else.
pub(super) fn open<'a>(key: &[u8; KEY], name: &str, file: &'a [u8]) -> Result<Verified<'a>, &'static str> {
    let rest = file.strip_prefix(MAGIC).ok_or("it is not a compiled module of this version")?;
    let (code, artifact) = rest.split_at_checked(CODE).ok_or("it is cut short")?;
    match mac(key, name, artifact).verify_slice(code) {
        Ok(()) => Ok(Verified(artifact)),
        Err(_) => Err("its authentication code is wrong: it was changed, or made with another key"),
    }
}

fn mac(key: &[u8; KEY], name: &str, artifact: &[u8]) -> Hmac<Sha256> {
    // A key of the hash's block size or less is used as it is, padded with zeros.
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(block, key)| *block = *key);
    <Hmac<Sha256> as Mac>::new(&block)
        .chain_update((name.len() as u64).to_le_bytes())
        .chain_update(name.as_bytes())
        .chain_update(artifact)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_A: [u8; KEY] = [7; KEY];

    #[test]
    fn only_the_same_bytes_under_the_same_key_and_name_open() {
        let sealed = Compiled(b"native code".to_vec()).seal(&KEY_A, "a");
        assert_eq!(open(&KEY_A, "a", &sealed).unwrap().bytes(), b"native code");
        assert!(open(&KEY_A, "b", &sealed).is_err());
        assert!(open(&[8; KEY], "a", &sealed).is_err());
        for length in 0..sealed.len() {
            assert!(open(&KEY_A, "a", &sealed[..length]).is_err(), "cut to {length}");
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&KEY_A, "a", &changed).is_err(), "changed at {at}");
        }
    }

    /// Padding the key here is what HMAC does with a short one itself (RFC 2104).
    #[test]
    fn the_code_is_hmac() {
        let ours = mac(&KEY_A, "n", b"x").finalize().into_bytes();
        let mut theirs = Hmac::<Sha256>::new_from_slice(&KEY_A).unwrap();
        theirs.update(&1u64.to_le_bytes());
        theirs.update(b"nx");
        assert_eq!(ours, theirs.finalize().into_bytes());
    }
}
