//! Random numbers that are part of the input.

use sha2::{Digest, Sha256};

use super::{Errno, Guest};
use crate::session::Session;

/// How much is made between two looks at the time limit.
const CHUNK: usize = 64 << 10;

/// A generator seeded by the invocation: SHA-256 in counter mode over a digest of arguments,
/// environment and stdin.
///
/// A flight must give the same output for the same input, so this is no source of secrets: who
/// knows the input knows the numbers. Toolchains use it to seed their hash tables.
#[derive(Debug)]
pub(crate) struct Random {
    seed: [u8; 32],
    counter: u64,
}

impl Random {
    fn new(session: &Session) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(b"horchestra random 1");
        session.args.iter().for_each(|arg| part(arg.as_bytes()));
        part(b"");
        for (name, value) in &session.env {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        part(&session.stdin);
        Self { seed: hash.finalize().into(), counter: 0 }
    }

    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(32) {
            let block =
                Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes()).finalize();
            self.counter = self.counter.wrapping_add(1);
            chunk.iter_mut().zip(block).for_each(|(out, byte)| *out = byte);
        }
    }
}

pub(crate) fn random_get(
    session: &mut Session,
    guest: &mut Guest<'_>,
    (out, length): (u32, u32),
) -> super::Outcome {
    let Ok(out) = guest.bytes_mut(out, length) else { return Ok(Errno::FAULT) };
    let mut random = session.random.take().unwrap_or_else(|| Random::new(session));
    for chunk in out.chunks_mut(CHUNK) {
        session.remaining()?;
        random.fill(chunk);
    }
    session.random = Some(random);
    Ok(Errno::SUCCESS)
}
