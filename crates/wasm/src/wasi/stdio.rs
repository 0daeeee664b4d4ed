//! The three standard streams.

use super::guest::offset;
use super::{Errno, Guest, Outcome};
use crate::session::Session;
use crate::stop::Stop;

/// The most buffers of one read or write, as Linux' `IOV_MAX`.
const MAX_IOVS: u32 = 1024;

const STDIN: u32 = 0;
const STDOUT: u32 = 1;

/// Rights as WASI numbers them: what libc looks at to know what a stream is for.
const RIGHT_READ: u64 = 1 << 1;
const RIGHT_WRITE: u64 = 1 << 6;
const RIGHT_FILESTAT_GET: u64 = 1 << 21;
const RIGHT_POLL: u64 = 1 << 27;

/// Whether a standard stream is open.
pub(super) fn is_open(session: &Session, fd: u32) -> bool {
    session.open.get(fd as usize).copied().unwrap_or(false)
}

/// What a function answers that works on files or sockets, which there are none of: an error for
/// an open stream, and `BADF` for everything else.
pub(crate) fn refuse(session: &Session, fd: u32, errno: Errno) -> Outcome {
    Ok(if is_open(session, fd) { errno } else { Errno::BADF })
}

/// Runs `f` and gives its error number to the guest, except that a stop stays one.
fn answer(f: impl FnOnce() -> Result<(), Answer>) -> Outcome {
    match f() {
        Ok(()) => Ok(Errno::SUCCESS),
        Err(Answer::Errno(errno)) => Ok(errno),
        Err(Answer::Stop(stop)) => Err(stop),
    }
}

enum Answer {
    Errno(Errno),
    Stop(Stop),
}

impl From<Errno> for Answer {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<Stop> for Answer {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// The address and length of each buffer of a read or write.
fn buffers(guest: &Guest<'_>, iovs: u32, count: u32) -> Result<Vec<(u32, u32)>, Errno> {
    if count > MAX_IOVS {
        return Err(Errno::INVAL);
    }
    (0..count)
        .map(|i| {
            let at = offset(iovs, i * 8)?;
            let (address, length) = (guest.u32(at)?, guest.u32(offset(at, 4)?)?);
            guest.bytes(address, length)?;
            Ok((address, length))
        })
        .collect()
}

pub(crate) fn fd_read(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (fd, iovs, count, out): (u32, u32, u32, u32),
) -> Outcome {
    answer(|| {
        if fd != STDIN || !is_open(session, fd) {
            return Err(Errno::BADF.into());
        }
        let buffers = buffers(guest, iovs, count)?;
        guest.bytes(out, 4)?;
        let mut total = 0;
        for (address, length) in buffers {
            let rest = session.stdin.get(session.stdin_at..).unwrap_or_default();
            let read = rest.get(..length as usize).unwrap_or(rest);
            guest.write(address, read)?;
            total += read.len() as u32;
            session.stdin_at += read.len();
        }
        Ok(guest.write_u32(out, total)?)
    })
}

pub(crate) fn fd_write(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (fd, iovs, count, out): (u32, u32, u32, u32),
) -> Outcome {
    answer(|| {
        if fd == STDIN || !is_open(session, fd) {
            return Err(Errno::BADF.into());
        }
        let buffers = buffers(guest, iovs, count)?;
        guest.bytes(out, 4)?;
        let mut total = 0u32;
        for (address, length) in buffers {
            session.remaining()?;
            let bytes = guest.bytes(address, length)?;
            if fd == STDOUT {
                session.print(bytes)?
            } else {
                session.log(bytes)
            }
            total = total.saturating_add(length);
        }
        Ok(guest.write_u32(out, total)?)
    })
}

pub(crate) fn fd_close(session: &mut Session, _: &mut Guest<'_>, (fd,): (u32,)) -> Outcome {
    Ok(match session.open.get_mut(fd as usize) {
        Some(open) if *open => {
            *open = false;
            Errno::SUCCESS
        }
        _ => Errno::BADF,
    })
}

/// `fdstat`: type u8, flags u16 at 2, base rights u64 at 8, inheriting rights u64 at 16. The type
/// is `unknown`, which is what a pipe is: libc then buffers whole blocks.
pub(crate) fn fd_fdstat_get(session: &mut Session, guest: &mut Guest<'_>, (fd, out): (u32, u32)) -> Outcome {
    answer(|| {
        if !is_open(session, fd) {
            return Err(Errno::BADF.into());
        }
        let rights = RIGHT_FILESTAT_GET | RIGHT_POLL | if fd == STDIN { RIGHT_READ } else { RIGHT_WRITE };
        let mut stat = [0; 24];
        stat[8..16].copy_from_slice(&rights.to_le_bytes());
        Ok(guest.write(out, &stat)?)
    })
}

/// `filestat` has 64 bytes; for a stream, all zero but the link count at 24.
pub(crate) fn fd_filestat_get(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (fd, out): (u32, u32),
) -> Outcome {
    answer(|| {
        if !is_open(session, fd) {
            return Err(Errno::BADF.into());
        }
        let mut stat = [0; 64];
        stat[24..32].copy_from_slice(&1u64.to_le_bytes());
        Ok(guest.write(out, &stat)?)
    })
}
