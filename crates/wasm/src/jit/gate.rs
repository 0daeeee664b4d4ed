//! How many evaluations run at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Lets a number of evaluations in, and the rest wait for their turn.
#[derive(Debug)]
pub(super) struct Gate {
    free: Mutex<u32>,
    freed: Condvar,
}

/// The right to run. Given back when dropped.
#[derive(Debug)]
pub(super) struct Permit<'a>(&'a Gate);

impl Gate {
    pub(super) fn new(count: u32) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a turn, at most this long.
    pub(super) fn enter(&self, patience: Option<Duration>) -> Option<Permit<'_>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = match patience {
            Some(patience) => {
                self.freed
                    .wait_timeout_while(free, patience, |free| *free == 0)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
            None => self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner),
        };
        *free = free.checked_sub(1)?;
        Some(Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_waits_until_one_leaves() {
        let gate = Gate::new(1);
        let inside = gate.enter(None).unwrap();
        assert!(gate.enter(Some(Duration::from_millis(5))).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter(Some(Duration::from_secs(20))).is_some());
            std::thread::sleep(Duration::from_millis(5));
            drop(inside);
            assert!(waiting.join().unwrap());
        });
        assert!(gate.enter(Some(Duration::ZERO)).is_some());
    }
}
