//! Arguments and environment.

use super::guest::offset;
use super::{Errno, Guest, Outcome};
use crate::session::Session;

pub(crate) fn args_get(session: &mut Session, guest: &mut Guest<'_>, at: (u32, u32)) -> Outcome {
    Ok(put(guest, session.args.iter().cloned(), at))
}

pub(crate) fn args_sizes_get(session: &mut Session, guest: &mut Guest<'_>, at: (u32, u32)) -> Outcome {
    Ok(put_sizes(guest, session.args.iter().map(String::len), at))
}

pub(crate) fn environ_get(session: &mut Session, guest: &mut Guest<'_>, at: (u32, u32)) -> Outcome {
    Ok(put(guest, session.env.iter().map(|(name, value)| format!("{name}={value}")), at))
}

pub(crate) fn environ_sizes_get(session: &mut Session, guest: &mut Guest<'_>, at: (u32, u32)) -> Outcome {
    Ok(put_sizes(guest, session.env.iter().map(|(name, value)| name.len() + 1 + value.len()), at))
}

/// Writes NUL-terminated strings to a buffer, and a pointer to each to a table.
fn put(guest: &mut Guest<'_>, strings: impl Iterator<Item = String>, (table, buffer): (u32, u32)) -> Errno {
    let write = || {
        let (mut entry, mut at) = (table, buffer);
        for mut string in strings {
            string.push('\0');
            guest.write_u32(entry, at)?;
            guest.write(at, string.as_bytes())?;
            entry = offset(entry, 4)?;
            at = offset(at, u32::try_from(string.len()).map_err(|_| Errno::FAULT)?)?;
        }
        Ok(())
    };
    write().map_or_else(|errno| errno, |()| Errno::SUCCESS)
}

/// Writes how many strings there are, and how many bytes they take with their NULs.
fn put_sizes(
    guest: &mut Guest<'_>,
    lengths: impl Iterator<Item = usize>,
    (count, size): (u32, u32),
) -> Errno {
    let (n, bytes) = lengths.fold((0usize, 0usize), |(n, bytes), length| (n + 1, bytes + length + 1));
    let write = match (u32::try_from(n), u32::try_from(bytes)) {
        (Ok(n), Ok(bytes)) => guest.write_u32(count, n).and_then(|()| guest.write_u32(size, bytes)),
        _ => Err(Errno::INVAL),
    };
    write.map_or_else(|errno| errno, |()| Errno::SUCCESS)
}
