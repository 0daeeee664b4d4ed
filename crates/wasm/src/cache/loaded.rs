//! The loaded modules, by a budget of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use horchestra_flight::contract::Evaluate;

/// A place for one loaded module. Its lock is held while it is being loaded, so that a second
/// caller waits for the first instead of compiling too.
pub(super) type Place = Arc<Mutex<Option<Arc<dyn Evaluate>>>>;

/// Loaded modules, the least recently used of which go first.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    entries: HashMap<String, Entry>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Entry {
    place: Place,
    cost: u64,
    used: u64,
}

impl Loaded {
    /// The place of a module, marked as used now.
    pub(super) fn place(&mut self, name: &str) -> Place {
        self.clock += 1;
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.used = self.clock;
        entry.place.clone()
    }

    /// The place of a module, if it has one.
    pub(super) fn find(&self, name: &str) -> Option<Place> {
        self.entries.get(name).map(|entry| entry.place.clone())
    }

    /// Notes what a module costs, and lets go of others until the budget holds. The module itself
    /// stays, however large: its caller has it anyway.
    pub(super) fn settle(&mut self, name: &str, cost: u64, budget: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.cost = cost;
        }
        let mut total: u64 = self.entries.values().map(|entry| entry.cost).sum();
        while total > budget {
            let others = self.entries.iter().filter(|(other, entry)| *other != name && entry.cost > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone())
            else {
                return;
            };
            total -= self.entries.remove(&oldest).map_or(0, |entry| entry.cost);
        }
    }

    /// Forgets a module that could not be loaded, unless somebody else is at it.
    pub(super) fn forget(&mut self, name: &str) {
        if self.entries.get(name).is_some_and(|entry| entry.cost == 0 && Arc::strong_count(&entry.place) <= 2)
        {
            self.entries.remove(name);
        }
    }
}
