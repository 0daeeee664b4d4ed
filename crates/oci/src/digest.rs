use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

use crate::Error;

/// A content digest: `sha256:` or `sha512:` and lower-case hexadecimal digits, as the OCI image specification
/// has it (descriptor.md, "Digests"). Nothing else can be in it, so it is safe as part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_len(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl Digest {
    /// The SHA-256 digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { algorithm: Algorithm::Sha256, hex: hex::encode(Sha256::digest(bytes)) }
    }

    /// `sha256` or `sha512`.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// The hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// A digest over what is read through it.
    pub(crate) fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |problem: &str| Error::document(format!("digest {text:?}"), problem);
        let (name, hex) = text.split_once(':').ok_or_else(|| bad("ALGORITHM:HEX is needed"))?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(bad("only sha256 and sha512 are known")),
        };
        if hex.len() != algorithm.hex_len() || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad("wrong number of lower-case hexadecimal digits"));
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

pub(crate) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(h) => h.update(bytes),
            Self::Sha512(h) => h.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        match self {
            Self::Sha256(h) => Digest { algorithm: Algorithm::Sha256, hex: hex::encode(h.finalize()) },
            Self::Sha512(h) => Digest { algorithm: Algorithm::Sha512, hex: hex::encode(h.finalize()) },
        }
    }
}

/// A reader that knows which digest, and where it is known which size, the bytes must have.
///
/// Nothing read through it may be believed before [`Verified::finish`] has said so.
pub struct Verified<R> {
    inner: R,
    what: String,
    expected: Digest,
    size: Option<u64>,
    read: u64,
    hasher: Hasher,
}

impl<R> fmt::Debug for Verified<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("what", &self.what).field("expected", &self.expected).finish()
    }
}

impl<R: Read> Verified<R> {
    pub(crate) fn new(inner: R, what: String, expected: Digest, size: Option<u64>) -> Self {
        let hasher = expected.hasher();
        Self { inner, what, expected, size, read: 0, hasher }
    }

    /// Reads what is left and compares size and digest.
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::Digest`], or [`Error::Io`] where reading fails.
    pub fn finish(mut self) -> Result<(), Error> {
        self.check()
    }

    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let what = self.what.clone();
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(what, e)),
            }
        }
        if let Some(expected) = self.size.filter(|s| *s != self.read) {
            return Err(Error::Size { what, expected, found: self.read });
        }
        let hasher = std::mem::replace(&mut self.hasher, self.expected.hasher());
        let found = hasher.finish();
        if found != self.expected {
            return Err(Error::Digest { what, expected: self.expected.clone(), found });
        }
        Ok(())
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte more than promised is enough to know; the rest is never read.
        let room = match self.size {
            Some(size) => {
                usize::try_from(size.saturating_add(1).saturating_sub(self.read)).unwrap_or(usize::MAX)
            }
            None => usize::MAX,
        };
        let len = buffer.len().min(room);
        let n = self.inner.read(buffer.get_mut(..len).unwrap_or_default())?;
        self.hasher.update(buffer.get(..n).unwrap_or_default());
        self.read += n as u64;
        Ok(n)
    }
}
