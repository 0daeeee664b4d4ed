//! The objects of one watch, as they are now.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use horchestra_core::{Object, ReleaseId};

use crate::Scope;

/// Namespace and name.
pub(crate) type Key = (Arc<str>, Arc<str>);

pub(crate) fn key_of(object: &Object) -> Key {
    (object.namespace().clone(), object.name().clone())
}

/// What an object was and what it is.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) old: Option<Object>,
    pub(crate) new: Option<Object>,
}

impl Change {
    /// The newest state there is of it.
    pub(crate) fn object(&self) -> Option<&Object> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

/// Objects by name, and by the release that owns them.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    objects: HashMap<Key, Object>,
    by_release: HashMap<ReleaseId, BTreeSet<Key>>,
    /// What was deleted lately: the answer to a write may come after the news that its object is gone.
    graves: VecDeque<(Key, Box<str>)>,
}

/// How many deletions are remembered.
const GRAVES: usize = 256;

/// Whether `a` is newer than `b`. Resource versions are numbers in every API server that there is
/// (KEP 5504 makes that a promise); where they are not, different counts as newer.
fn is_newer(a: &str, b: &str) -> bool {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a > b,
        _ => a != b,
    }
}

impl Cache {
    pub(crate) fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn of_release(&self, release: &ReleaseId) -> Vec<Object> {
        let keys = self.by_release.get(release).into_iter().flatten();
        keys.filter_map(|k| self.objects.get(k)).cloned().collect()
    }

    /// Takes in what a write returned, unless the object is known to be gone since.
    pub(crate) fn absorb(&mut self, object: Object) -> Option<Change> {
        let key = key_of(&object);
        if self.graves.iter().any(|(k, v)| *k == key && is_newer(v, object.resource_version())) {
            return None;
        }
        self.put(object)
    }

    /// Takes in that an object was deleted at a version.
    pub(crate) fn bury(&mut self, object: &Object) -> Option<Change> {
        let key = key_of(object);
        self.graves.push_back((key.clone(), object.resource_version().into()));
        if self.graves.len() > GRAVES {
            self.graves.pop_front();
        }
        self.remove(&key, object.uid())
    }

    /// Takes in a state of an object unless a newer one is there already.
    pub(crate) fn put(&mut self, object: Object) -> Option<Change> {
        let key = key_of(&object);
        let old = self.objects.get(&key);
        if let Some(old) = old {
            let same = old.uid() == object.uid();
            if same && !is_newer(object.resource_version(), old.resource_version()) {
                return None;
            }
        }
        let old = old.cloned();
        if let Some(old) = &old {
            self.unlink(old, &key);
        }
        if let Some(release) = object.release() {
            self.by_release.entry(release.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key, object.clone());
        Some(Change { old, new: Some(object) })
    }

    /// Takes out an object, unless a later incarnation or state of it is there.
    pub(crate) fn remove(&mut self, key: &Key, uid: &str) -> Option<Change> {
        let old = self.objects.get(key)?;
        if !uid.is_empty() && old.uid() != uid {
            return None;
        }
        let old = self.objects.remove(key)?;
        self.unlink(&old, key);
        Some(Change { old: Some(old), new: None })
    }

    /// Replaces everything by a listing; returns what changed by it.
    pub(crate) fn replace(&mut self, listing: Vec<Object>, scope: &Scope) -> Vec<Change> {
        let listed: BTreeSet<Key> = listing.iter().map(key_of).collect();
        let gone: Vec<Key> = self
            .objects
            .keys()
            .filter(|k| scope.contains(&k.0, &k.1) && !listed.contains(*k))
            .cloned()
            .collect();
        let mut changes: Vec<Change> = gone.iter().filter_map(|k| self.remove(k, "")).collect();
        changes.extend(listing.into_iter().filter_map(|o| self.put(o)));
        changes
    }

    fn unlink(&mut self, old: &Object, key: &Key) {
        if let Some(release) = old.release()
            && let Some(keys) = self.by_release.get_mut(release)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_release.remove(release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, uid: &str, version: &str) -> Object {
        Object::from_value(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": version}}))
        .unwrap()
    }

    #[test]
    fn an_older_state_never_replaces_a_newer_one() {
        let mut cache = Cache::default();
        assert!(cache.put(object("a", "u", "7")).is_some());
        assert!(cache.put(object("a", "u", "6")).is_none());
        assert!(cache.put(object("a", "u", "7")).is_none());
        assert!(cache.put(object("a", "u", "10")).is_some());
        let key = ("n".into(), "a".into());
        assert!(cache.remove(&key, "other").is_none());
        assert!(cache.put(object("a", "next", "8")).is_some(), "another incarnation counts for itself");
    }

    #[test]
    fn a_late_answer_does_not_bring_a_deleted_object_back() {
        let mut cache = Cache::default();
        cache.bury(&object("a", "u", "9"));
        assert!(cache.absorb(object("a", "u", "8")).is_none());
        assert!(cache.absorb(object("a", "next", "10")).is_some());
    }

    #[test]
    fn a_listing_reports_exactly_what_changed() {
        let mut cache = Cache::default();
        cache.put(object("gone", "1", "1"));
        cache.put(object("same", "2", "2"));
        let changes = cache.replace(vec![object("same", "2", "2"), object("new", "3", "3")], &Scope::All);
        let names: Vec<_> =
            changes.iter().map(|c| (&**c.object().unwrap().name(), c.new.is_some())).collect();
        assert_eq!(names, [("gone", false), ("new", true)]);
    }
}
