use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::state::State;
use super::{Entry, Page, Range, Revision, StoreError};

/// Reads a page of a prefix, now or as of an older revision.
///
/// An older revision is the present with the log undone, newest change first. That costs time in proportion to what
/// changed since, and no memory until somebody asks.
pub(super) fn range(state: &State, prefix: &str, options: &Range) -> Result<Page, StoreError> {
    let at = options.at.unwrap_or(state.revision());
    state.check(at)?;
    let bounds = Bounds::new(prefix, options.after.as_deref());
    if bounds.empty() {
        return Ok(Page { entries: Vec::new(), revision: at, more: false, remaining: 0 });
    }
    let undone = undone(state, at, &bounds);
    let mut present = state.current.range::<str, _>(bounds.pair()).peekable();
    let mut before = undone.iter().peekable();
    let merged = std::iter::from_fn(|| {
        loop {
            let changed = match (present.peek(), before.peek()) {
                (Some((key, _)), Some((changed, _))) => **changed <= *key,
                (present, changed) => present.is_none() && changed.is_some(),
            };
            if !changed {
                return present.next().map(|(_, entry)| entry);
            }
            let (key, entry) = before.next()?;
            present.next_if(|(current, _)| *current == *key);
            if let Some(entry) = entry {
                return Some(*entry);
            }
        }
    });
    Ok(page(merged, options.limit, at))
}

fn page<'a>(mut entries: impl Iterator<Item = &'a Entry>, limit: Option<usize>, revision: Revision) -> Page {
    let taken = entries.by_ref().take(limit.unwrap_or(usize::MAX)).cloned().collect();
    let remaining = if limit.is_some() { entries.count() } else { 0 };
    Page { entries: taken, revision, more: remaining > 0, remaining }
}

/// The keys that changed after a revision, with what they held at it.
fn undone<'a>(
    state: &'a State,
    at: Revision,
    bounds: &Bounds<'_>,
) -> BTreeMap<&'a Arc<str>, Option<&'a Entry>> {
    let mut undone = BTreeMap::new();
    if at < state.revision() {
        for event in state.commits_after(at).flat_map(|commit| commit.events.iter()) {
            if bounds.contain(&event.key) {
                // The first change after `at` is the one that saw what was there at it.
                undone.entry(&event.key).or_insert(event.previous.as_ref());
            }
        }
    }
    undone
}

/// The keys of a prefix that come after some key.
struct Bounds<'a> {
    prefix: &'a str,
    after: Option<&'a str>,
    end: Option<String>,
}

impl<'a> Bounds<'a> {
    fn new(prefix: &'a str, after: Option<&'a str>) -> Self {
        Bounds { prefix, after: after.filter(|after| *after >= prefix), end: successor(prefix) }
    }

    /// A `BTreeMap` panics when a range starts behind its end.
    fn empty(&self) -> bool {
        matches!((self.after, &self.end), (Some(after), Some(end)) if after >= end.as_str())
    }

    fn pair(&self) -> (Bound<&str>, Bound<&str>) {
        let start = self.after.map_or(Bound::Included(self.prefix), Bound::Excluded);
        (start, self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
    }

    fn contain(&self, key: &str) -> bool {
        key.starts_with(self.prefix) && self.after.is_none_or(|after| key > after)
    }
}

/// The first string after all that start with `prefix`; `None` if there is none. UTF-8 sorts as its characters do.
fn successor(prefix: &str) -> Option<String> {
    let mut chars = prefix.chars();
    while let Some(last) = chars.next_back() {
        // The range of `char` steps over the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            let mut successor = chars.as_str().to_owned();
            successor.push(next);
            return Some(successor);
        }
    }
    None
}
