//! Who has to be told of which change: the reads of every resource, turned around.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use horchestra_core::selector::LabelSelector;
use horchestra_core::{GroupKind, Object, ObjectRef, Read};

use crate::cache::Change;
use crate::informer::Informer;

/// A resource of one reconciler.
pub(crate) type Subscriber = ObjectRef;

/// What one subscriber reads.
#[derive(Debug, Default)]
struct Reads {
    reads: BTreeSet<Read>,
    /// Keeps the watches alive that answer them.
    holds: Vec<Arc<Informer>>,
}

/// A list that somebody read.
#[derive(Debug, Clone)]
struct ListRead {
    namespace: Option<Arc<str>>,
    selector: LabelSelector,
}

impl ListRead {
    fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|n| n == object.namespace()) && matches(&self.selector, object)
    }
}

/// Whether an object has the labels that a selector asks for.
pub(crate) fn matches(selector: &LabelSelector, object: &Object) -> bool {
    if selector.is_everything() {
        return true;
    }
    let labels = object.labels().map(|(k, v)| (k.to_owned(), v.into())).collect();
    selector.matches(&labels)
}

/// All reads of all subscribers.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    of: HashMap<Subscriber, Reads>,
    objects: HashMap<ObjectRef, HashSet<Subscriber>>,
    lists: HashMap<GroupKind, HashMap<(Subscriber, Read), ListRead>>,
}

impl Interests {
    /// Notes a read before it is answered, so that a change after the answer is never missed.
    pub(crate) fn add(&mut self, subscriber: &Subscriber, read: &Read, hold: Option<Arc<Informer>>) {
        let reads = self.of.entry(subscriber.clone()).or_default();
        if let Some(hold) = hold
            && !reads.holds.iter().any(|h| Arc::ptr_eq(h, &hold))
        {
            reads.holds.push(hold);
        }
        if !reads.reads.insert(read.clone()) {
            return;
        }
        match read {
            Read::Get { kind, namespace, name } => {
                let object = ObjectRef::new(kind.group_kind(), namespace.clone(), name.clone());
                self.objects.entry(object).or_default().insert(subscriber.clone());
            }
            Read::List { kind, namespace, selector } => {
                let Ok(selector) = LabelSelector::parse(selector) else { return };
                let list = ListRead { namespace: namespace.clone(), selector };
                self.lists
                    .entry(kind.group_kind())
                    .or_default()
                    .insert((subscriber.clone(), read.clone()), list);
            }
            _ => {}
        }
    }

    /// Forgets every read of a subscriber that is not in the set, and the watches that only they needed.
    pub(crate) fn retain(
        &mut self,
        subscriber: &Subscriber,
        keep: impl Fn(&Read) -> bool,
        needs: impl Fn(&Read, &Informer) -> bool,
    ) {
        let Some(reads) = self.of.get_mut(subscriber) else { return };
        let (kept, dropped): (BTreeSet<Read>, BTreeSet<Read>) =
            std::mem::take(&mut reads.reads).into_iter().partition(|r| keep(r));
        reads.holds.retain(|h| kept.iter().any(|r| needs(r, h)));
        let empty = kept.is_empty();
        reads.reads = kept;
        if empty {
            self.of.remove(subscriber);
        }
        for read in dropped {
            match &read {
                Read::Get { kind, namespace, name } => {
                    let object = ObjectRef::new(kind.group_kind(), namespace.clone(), name.clone());
                    if let Some(set) = self.objects.get_mut(&object) {
                        set.remove(subscriber);
                        if set.is_empty() {
                            self.objects.remove(&object);
                        }
                    }
                }
                Read::List { kind, .. } => {
                    let kind = kind.group_kind();
                    if let Some(lists) = self.lists.get_mut(&kind) {
                        lists.remove(&(subscriber.clone(), read.clone()));
                        if lists.is_empty() {
                            self.lists.remove(&kind);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Everybody who read what has changed.
    pub(crate) fn affected(&self, object: &ObjectRef, change: &Change) -> HashSet<Subscriber> {
        let mut found = self.objects.get(object).cloned().unwrap_or_default();
        for ((subscriber, _), list) in self.lists.get(&object.kind).into_iter().flatten() {
            let touched = [&change.old, &change.new].into_iter().flatten().any(|o| list.matches(o));
            if touched {
                found.insert(subscriber.clone());
            }
        }
        found
    }

    /// How many subscribers have reads.
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }
}
