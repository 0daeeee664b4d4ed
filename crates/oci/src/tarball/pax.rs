use super::Mtime;
use crate::limits::MAX_XATTRS;

/// The records of PAX extended headers that mean something here (POSIX, pax, "Extended Header").
#[derive(Clone, Debug, Default)]
pub(crate) struct Pax {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u64>,
    pub gid: Option<u64>,
    pub mtime: Option<Mtime>,
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

const XATTR: &[u8] = b"SCHILY.xattr.";

impl Pax {
    /// Parses `LENGTH KEY=VALUE\n` records.
    pub(crate) fn parse(mut bytes: &[u8]) -> Result<Self, String> {
        let mut pax = Self::default();
        while !bytes.is_empty() {
            let space = bytes.iter().take(20).position(|b| *b == b' ').ok_or("malformed extended header")?;
            let (digits, _) = bytes.split_at(space);
            let len: usize = std::str::from_utf8(digits)
                .ok()
                .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|d| d.parse().ok())
                .ok_or("malformed length in an extended header")?;
            let record = bytes.get(space + 1..len).ok_or("extended header record longer than its header")?;
            let record = record.strip_suffix(b"\n").ok_or("extended header record without its newline")?;
            let equals =
                record.iter().position(|b| *b == b'=').ok_or("extended header record without '='")?;
            let (key, value) = record.split_at(equals);
            pax.set(key, value.get(1..).unwrap_or_default())?;
            bytes = bytes.get(len..).unwrap_or_default();
        }
        Ok(pax)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let name = String::from_utf8_lossy(key);
        let number = || -> Result<u64, String> {
            std::str::from_utf8(value)
                .ok()
                .filter(|v| v.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| format!("extended header {name}: not a number"))
        };
        let text = || -> Result<Vec<u8>, String> {
            if value.contains(&0) {
                Err(format!("extended header {name}: holds NUL"))
            } else {
                Ok(value.to_vec())
            }
        };
        match key {
            // An empty value takes the record back (POSIX).
            b"path" => self.path = if value.is_empty() { None } else { Some(text()?) },
            b"linkpath" => self.link = if value.is_empty() { None } else { Some(text()?) },
            b"size" => {
                let size = number()?;
                if self.size.is_some_and(|before| before != size) {
                    return Err("extended header size: said twice, differently".to_owned());
                }
                self.size = Some(size);
            }
            b"uid" => self.uid = Some(number()?),
            b"gid" => self.gid = Some(number()?),
            b"mtime" => self.mtime = Some(mtime(value).ok_or("extended header mtime: not a time")?),
            _ if key.starts_with(b"GNU.sparse.") => {
                return Err("sparse files in PAX format are not supported; pack the layer without --sparse"
                    .to_owned());
            }
            _ => {
                if let Some(xattr) = key.strip_prefix(XATTR) {
                    if xattr.is_empty() || xattr.len() > 255 || xattr.contains(&0) {
                        return Err("extended attribute with a name that no file can have".to_owned());
                    }
                    self.xattrs.retain(|(k, _)| k.as_slice() != xattr);
                    self.xattrs.push((xattr.to_vec(), value.to_vec()));
                    if self.xattrs.len() > MAX_XATTRS {
                        return Err(format!("more than {MAX_XATTRS} extended attributes (MAX_XATTRS)"));
                    }
                }
            }
        }
        Ok(())
    }

    /// True where a header for all following entries would change what they are or where they go.
    pub(crate) fn changes_meaning(&self) -> bool {
        self.path.is_some() || self.link.is_some() || self.size.is_some() || !self.xattrs.is_empty()
    }
}

/// Seconds with an optional fraction and sign. What is finer than a nanosecond is cut off.
fn mtime(value: &[u8]) -> Option<Mtime> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let negative = whole.starts_with('-');
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let secs: i64 = whole.parse().ok()?;
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    // Nanoseconds count forwards: -1.25 is two seconds before 1970 and 0.75 after that.
    if negative && nanos > 0 {
        return Some(Mtime { secs: secs.checked_sub(1)?, nanos: 1_000_000_000 - nanos });
    }
    Some(Mtime { secs, nanos })
}
