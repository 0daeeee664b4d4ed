/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    /// A sparse file: the segments that hold data, as offset and length.
    Sparse(Vec<(u64, u64)>),
    HardLink,
    Symlink,
    Dir,
    Fifo,
    CharDevice,
    BlockDevice,
}

/// Seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mtime {
    pub secs: i64,
    pub nanos: u32,
}

/// One entry, with everything that headers before it said merged in.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub path: Vec<u8>,
    pub link: Vec<u8>,
    pub kind: Kind,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: Mtime,
    /// Size of the file as it will be on disk.
    pub size: u64,
    pub device: (u32, u32),
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}
