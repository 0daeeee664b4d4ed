use std::io::{self, Read};

use tar::{EntryType, Header};

use super::{Entry, Kind, Mtime, number, pax::Pax, sparse};
use crate::limits::{MAX_EXTENDED_BYTES, MAX_PATH_BYTES};

/// An archive, entry by entry. The header's layout and checksum are crate `tar`'s; how headers add up to an
/// entry is decided here, because that is where readers differ and archives lie (CVE-2025-62518).
#[derive(Debug)]
pub(crate) struct Reader<R> {
    inner: R,
    /// Bytes of the current entry not yet read, and the padding after them.
    data: u64,
    padding: u64,
}

/// What is wrong with the archive: its own fault, or reading it failed.
#[derive(Debug)]
pub(crate) enum TarError {
    Malformed { path: Vec<u8>, problem: String },
    Io(io::Error),
}

impl From<io::Error> for TarError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

const BLOCK: u64 = 512;
/// The largest size that a ustar header can say in octal digits.
const MAX_OCTAL_SIZE: u64 = 0o77_777_777_777;

impl<R: Read> Reader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, data: 0, padding: 0 }
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }

    /// The next entry, or `None` at the end of the archive.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, TarError> {
        self.skip()?;
        let mut long_name: Option<Vec<u8>> = None;
        let mut long_link: Option<Vec<u8>> = None;
        let mut pax: Option<Pax> = None;
        loop {
            let pending = long_name.is_some() || long_link.is_some() || pax.is_some();
            let Some(header) = self.header()? else {
                if pending {
                    return Err(malformed(
                        &long_name.unwrap_or_default(),
                        "extended headers without an entry",
                    ));
                }
                return Ok(None);
            };
            let name = header.path_bytes().into_owned();
            let twice =
                |is: bool| if is { Err(malformed(&name, "said twice by extended headers")) } else { Ok(()) };
            let stored = number::unsigned(&header.as_old().size)
                .ok_or_else(|| malformed(&name, "the size is negative or malformed"))?;
            match header.entry_type() {
                EntryType::GNULongName => {
                    twice(long_name.is_some())?;
                    long_name = Some(self.long(&name, stored)?);
                }
                EntryType::GNULongLink => {
                    twice(long_link.is_some())?;
                    long_link = Some(self.long(&name, stored)?);
                }
                EntryType::XHeader => {
                    twice(pax.is_some())?;
                    let bytes = self.extended(&name, stored)?;
                    pax = Some(Pax::parse(&bytes).map_err(|p| malformed(&name, p))?);
                }
                EntryType::XGlobalHeader => {
                    let bytes = self.extended(&name, stored)?;
                    let global = Pax::parse(&bytes).map_err(|p| malformed(&name, p))?;
                    if global.changes_meaning() {
                        return Err(malformed(&name, "a global header may not rename or resize entries"));
                    }
                }
                _ => {
                    let extra = Extra { long_name, long_link, pax: pax.unwrap_or_default() };
                    return self.entry(&header, stored, extra).map(Some);
                }
            }
        }
    }

    /// Reads data of the current entry.
    pub(crate) fn read_data(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = usize::try_from(self.data).unwrap_or(usize::MAX).min(buffer.len());
        if len == 0 {
            return Ok(0);
        }
        let n = self.inner.read(buffer.get_mut(..len).unwrap_or_default())?;
        if n == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends within an entry"));
        }
        self.data -= n as u64;
        Ok(n)
    }

    fn skip(&mut self) -> io::Result<()> {
        let amount = self.data.saturating_add(self.padding);
        let skipped = io::copy(&mut (&mut self.inner).take(amount), &mut io::sink())?;
        if skipped < self.data {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends within an entry"));
        }
        (self.data, self.padding) = (0, 0);
        Ok(())
    }

    fn block(&mut self) -> Result<Option<[u8; 512]>, TarError> {
        let mut block = [0u8; 512];
        let mut filled = 0;
        while let Some(room) = block.get_mut(filled..).filter(|r| !r.is_empty()) {
            match self.inner.read(room) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(malformed(b"", "the archive ends within a header")),
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Some(block))
    }

    fn header(&mut self) -> Result<Option<Header>, TarError> {
        let Some(block) = self.block()? else { return Ok(None) };
        if block.iter().all(|b| *b == 0) {
            // The end is two such blocks; one alone, with something after it, is not.
            return match self.block()? {
                Some(next) if next.iter().any(|b| *b != 0) => {
                    Err(malformed(b"", "one empty block in the middle of the archive"))
                }
                _ => Ok(None),
            };
        }
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(&block);
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(n, b)| if (148..156).contains(&n) { u32::from(b' ') } else { u32::from(*b) })
            .sum();
        if header.cksum().ok() != Some(sum) {
            return Err(malformed(&header.path_bytes(), "the header's checksum is wrong"));
        }
        Ok(Some(header))
    }

    fn extended(&mut self, name: &[u8], size: u64) -> Result<Vec<u8>, TarError> {
        if size > MAX_EXTENDED_BYTES {
            return Err(malformed(
                name,
                format!("extended header of {size} bytes; {MAX_EXTENDED_BYTES} are allowed"),
            ));
        }
        let mut bytes = vec![0u8; usize::try_from(size).unwrap_or_default()];
        self.inner.read_exact(&mut bytes)?;
        let padding = size.next_multiple_of(BLOCK) - size;
        io::copy(&mut (&mut self.inner).take(padding), &mut io::sink())?;
        Ok(bytes)
    }

    fn long(&mut self, name: &[u8], size: u64) -> Result<Vec<u8>, TarError> {
        let mut bytes = self.extended(name, size)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        if bytes.iter().skip(end).any(|b| *b != 0) {
            return Err(malformed(name, "a long name holds NUL"));
        }
        bytes.truncate(end);
        Ok(bytes)
    }

    fn entry(&mut self, header: &Header, stored: u64, extra: Extra) -> Result<Entry, TarError> {
        let Extra { long_name, long_link, pax } = extra;
        let own = header.path_bytes().into_owned();
        let path =
            one_of(long_name, pax.path.clone(), own).map_err(|p| malformed(&header.path_bytes(), p))?;
        let bad = |problem: &str| malformed(&path, problem);
        let link = header.link_name_bytes().map(|l| l.into_owned()).unwrap_or_default();
        let link = one_of(long_link, pax.link.clone(), link).map_err(|p| malformed(&path, p))?;
        if path.len() > MAX_PATH_BYTES || link.len() > MAX_PATH_BYTES {
            return Err(bad("the name or the link is longer than 4095 bytes (MAX_PATH_BYTES)"));
        }
        let mut kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous if path.ends_with(b"/") => Kind::Dir,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Link => Kind::HardLink,
            EntryType::Symlink => Kind::Symlink,
            EntryType::Char => Kind::CharDevice,
            EntryType::Block => Kind::BlockDevice,
            EntryType::Directory => Kind::Dir,
            EntryType::Fifo => Kind::Fifo,
            EntryType::GNUSparse => Kind::Sparse(Vec::new()),
            other => {
                return Err(malformed(
                    &path,
                    format!("entries of type {:?} are not supported", char::from(other.as_byte())),
                ));
            }
        };
        let stored = match pax.size {
            None => stored,
            // The header can only be silent about a size it has no room for. Anything else has two meanings.
            Some(size) if size == stored || size > MAX_OCTAL_SIZE => size,
            Some(size) => {
                return Err(malformed(
                    &path,
                    format!("two sizes: {stored} in the header and {size} in its extension"),
                ));
            }
        };
        let has_data = matches!(kind, Kind::File | Kind::Sparse(_));
        if !has_data && stored != 0 {
            return Err(bad("data after an entry that cannot have any"));
        }
        if stored > i64::MAX as u64 - BLOCK {
            return Err(bad("the size is out of range"));
        }
        let mut size = stored;
        if let Kind::Sparse(_) = kind {
            let (segments, real) = self.sparse(header, stored).map_err(|e| match e {
                TarError::Malformed { problem, .. } => malformed(&path, problem),
                io => io,
            })?;
            (kind, size) = (Kind::Sparse(segments), real);
        }
        let old = header.as_old();
        let id = |pax: Option<u64>, field: &[u8], what: &str| -> Result<u32, TarError> {
            // 2^32-1 means "leave it as it is" to the kernel, so that it can never be an owner.
            let id = pax.or_else(|| number::unsigned(field)).and_then(|n| u32::try_from(n).ok());
            id.filter(|n| *n != u32::MAX).ok_or_else(|| {
                malformed(&path, format!("the {what} is negative, malformed or larger than 4294967294"))
            })
        };
        let mode = number::unsigned(&old.mode).ok_or_else(|| bad("the mode is malformed"))?;
        let mtime = match pax.mtime {
            Some(mtime) => mtime,
            None => {
                let secs =
                    number::field(&old.mtime).ok_or_else(|| bad("the modification time is malformed"))?;
                Mtime { secs, nanos: 0 }
            }
        };
        let major = header.device_major().ok().flatten().unwrap_or_default();
        let minor = header.device_minor().ok().flatten().unwrap_or_default();
        let entry = Entry {
            uid: id(pax.uid, &old.uid, "owner")?,
            gid: id(pax.gid, &old.gid, "group")?,
            mode: u32::try_from(mode & 0o7777).unwrap_or_default(),
            link,
            kind,
            mtime,
            size,
            device: (major, minor),
            xattrs: pax.xattrs,
            path,
        };
        self.data = stored;
        self.padding = stored.next_multiple_of(BLOCK) - stored;
        Ok(entry)
    }

    fn sparse(&mut self, header: &Header, stored: u64) -> Result<(Vec<(u64, u64)>, u64), TarError> {
        let bad = |problem: &str| malformed(b"", problem);
        let gnu = header.as_gnu().ok_or_else(|| bad("a sparse file in an archive that is not GNU's"))?;
        let real = number::unsigned(&gnu.realsize).ok_or_else(|| bad("the size is negative or malformed"))?;
        let mut map = sparse::Map::default();
        // The four descriptors of the header itself stand at offset 386 of it.
        let bytes = header.as_bytes().get(386..386 + 4 * sparse::DESCRIPTOR).unwrap_or_default();
        map.add(bytes).map_err(|p| bad(&p))?;
        let mut more = gnu.is_extended();
        while more {
            let block = self.block()?.ok_or_else(|| bad("the archive ends within a sparse map"))?;
            map.add(block.get(..21 * sparse::DESCRIPTOR).unwrap_or_default()).map_err(|p| bad(&p))?;
            more = block.get(21 * sparse::DESCRIPTOR) == Some(&1);
        }
        let segments = map.finish(stored, real).map_err(|p| bad(&p))?;
        Ok((segments, real))
    }
}

struct Extra {
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    pax: Pax,
}

/// A name that GNU's and PAX' headers both give must be the same in both.
fn one_of(gnu: Option<Vec<u8>>, pax: Option<Vec<u8>>, own: Vec<u8>) -> Result<Vec<u8>, String> {
    match (gnu, pax) {
        (Some(gnu), Some(pax)) if gnu != pax => {
            Err("two names: GNU's header and PAX' header contradict each other".to_owned())
        }
        (Some(name), _) | (None, Some(name)) => Ok(name),
        (None, None) => Ok(own),
    }
}

fn malformed(path: &[u8], problem: impl Into<String>) -> TarError {
    TarError::Malformed { path: path.to_vec(), problem: problem.into() }
}
