//! `poll_oneoff`: waiting, in a world where only the guest's own clock moves.

use std::time::Duration;

use super::guest::offset;
use super::stdio::is_open;
use super::{Errno, Guest, Outcome};
use crate::session::Session;

/// The most subscriptions of one call.
const MAX_SUBSCRIPTIONS: u32 = 4096;

/// `subscription`: userdata u64, tag u8 at 8; then at 16 for a clock its id u32, timeout u64 at
/// 24, flags u16 at 40, or for a stream its number u32.
const SUBSCRIPTION: u32 = 48;
/// `event`: userdata u64, errno u16 at 8, type u8 at 10, bytes u64 at 16, flags u16 at 24.
const EVENT: usize = 32;

const TAG_CLOCK: u8 = 0;
const TAG_READ: u8 = 1;
const TAG_WRITE: u8 = 2;
const ABSTIME: u16 = 1;

enum Subscription {
    /// A clock that rings after this time.
    Clock { userdata: u64, after: Duration },
    /// A stream, which is always ready, or an error.
    Ready { userdata: u64, tag: u8, errno: Errno, bytes: u64 },
}

/// Nothing is slept: a stream is ready at once, and if only clocks are waited for, the guest's
/// clock moves to the first that rings.
pub(crate) fn poll_oneoff(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (subscriptions, events, count, out): (u32, u32, u32, u32),
) -> Outcome {
    session.remaining()?;
    Ok(poll(session, guest, subscriptions, events, count, out)
        .map_or_else(|errno| errno, |()| Errno::SUCCESS))
}

fn poll(
    session: &mut Session,
    guest: &mut Guest<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    out: u32,
) -> Result<(), Errno> {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::INVAL);
    }
    guest.bytes(events, count * EVENT as u32)?;
    guest.bytes(out, 4)?;
    let asked = (0..count)
        .map(|i| subscription(session, guest, offset(subscriptions, i * SUBSCRIPTION)?))
        .collect::<Result<Vec<_>, _>>()?;

    let any_ready = asked.iter().any(|s| matches!(s, Subscription::Ready { .. }));
    let first = asked.iter().filter_map(|s| match s {
        Subscription::Clock { after, .. } => Some(*after),
        Subscription::Ready { .. } => None,
    });
    let waited = if any_ready { Duration::ZERO } else { first.min().unwrap_or_default() };
    session.clock.advance(waited);

    let mut written = 0u32;
    for asked in &asked {
        let (userdata, tag, errno, bytes) = match *asked {
            Subscription::Clock { userdata, after } if after <= waited => {
                (userdata, TAG_CLOCK, Errno::SUCCESS, 0)
            }
            Subscription::Clock { .. } => continue,
            Subscription::Ready { userdata, tag, errno, bytes } => (userdata, tag, errno, bytes),
        };
        let mut event = [0; EVENT];
        event[..8].copy_from_slice(&userdata.to_le_bytes());
        event[8..10].copy_from_slice(&(errno.0 as u16).to_le_bytes());
        event[10] = tag;
        event[16..24].copy_from_slice(&bytes.to_le_bytes());
        guest.write(offset(events, written * EVENT as u32)?, &event)?;
        written += 1;
    }
    guest.write_u32(out, written)
}

fn subscription(session: &Session, guest: &Guest<'_>, at: u32) -> Result<Subscription, Errno> {
    let userdata = guest.u64(at)?;
    let body = offset(at, 16)?;
    match guest.u8(offset(at, 8)?)? {
        TAG_CLOCK => {
            let (id, timeout) = (guest.u32(body)?, guest.u64(offset(at, 24)?)?);
            let now = session.clock.now(id)?;
            let absolute = guest.u16(offset(at, 40)?)? & ABSTIME != 0;
            let after = if absolute { timeout.saturating_sub(now) } else { timeout };
            Ok(Subscription::Clock { userdata, after: Duration::from_nanos(after) })
        }
        tag @ (TAG_READ | TAG_WRITE) => {
            let fd = guest.u32(body)?;
            let errno = if is_open(session, fd) { Errno::SUCCESS } else { Errno::BADF };
            let bytes = match tag {
                TAG_READ => session.stdin.len().saturating_sub(session.stdin_at) as u64,
                _ => 1,
            };
            Ok(Subscription::Ready { userdata, tag, errno, bytes })
        }
        _ => Err(Errno::INVAL),
    }
}
