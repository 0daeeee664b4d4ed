//! The error numbers in use, from the `errno` type of WASI preview 1.

/// An error number of WASI preview 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const SUCCESS: Self = Self(0);
    /// Not an open file.
    pub(crate) const BADF: Self = Self(8);
    /// An address outside the memory.
    pub(crate) const FAULT: Self = Self(21);
    pub(crate) const INVAL: Self = Self(28);
    pub(crate) const NOSYS: Self = Self(52);
    pub(crate) const NOTDIR: Self = Self(54);
    pub(crate) const NOTSOCK: Self = Self(57);
    pub(crate) const NOTSUP: Self = Self(58);
    /// Not seekable: what standard streams are.
    pub(crate) const SPIPE: Self = Self(70);
}
