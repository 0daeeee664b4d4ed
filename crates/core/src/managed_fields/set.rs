//! Sets of paths.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::element::PathElement;

/// A set of paths. A path being in the set says nothing about the paths below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// No node is neither a member nor has children.
    nodes: BTreeMap<PathElement, Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: BTreeMap::new() }
    }

    /// Whether no path is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path. The empty path is in no set.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter();
        let Some(first) = path.next() else { return };
        let mut node = self.nodes.entry(first).or_default();
        for element in path {
            node = node.children.nodes.entry(element).or_default();
        }
        node.member = true;
    }

    /// Adds what is below `element`, and `element` itself if it is a member.
    pub(crate) fn put(&mut self, element: PathElement, member: bool, children: Self) {
        if !member && children.is_empty() {
            return;
        }
        match self.nodes.entry(element) {
            Entry::Vacant(place) => {
                place.insert(Node { member, children });
            }
            Entry::Occupied(mut place) => {
                let node = place.get_mut();
                node.member |= member;
                let had = std::mem::take(&mut node.children);
                node.children = had.union(&children);
            }
        }
    }

    /// Whether this path is in the set.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.nodes.get(first).is_some_and(|node| node.children.contains(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// What is below an element, if anything is.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// Elements, whether they are members, and what is below them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&PathElement, bool, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, node.member, &node.children))
    }

    /// Paths in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.extend(other);
        out
    }

    fn extend(&mut self, other: &Self) {
        for (element, theirs) in &other.nodes {
            match self.nodes.entry(element.clone()) {
                Entry::Vacant(place) => {
                    place.insert(theirs.clone());
                }
                Entry::Occupied(mut place) => {
                    let ours = place.get_mut();
                    ours.member |= theirs.member;
                    ours.children.extend(&theirs.children);
                }
            }
        }
    }

    /// Paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, ours| {
            let Some(theirs) = other.nodes.get(element) else { return Node::default() };
            Node {
                member: ours.member && theirs.member,
                children: ours.children.intersection(&theirs.children),
            }
        })
    }

    /// Paths in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(|element, ours| {
            let Some(theirs) = other.nodes.get(element) else { return ours.clone() };
            Node {
                member: ours.member && !theirs.member,
                children: ours.children.difference(&theirs.children),
            }
        })
    }

    /// Paths in this set that are neither in the other nor below a path of the other.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.nodes.get(element) {
            None => ours.clone(),
            Some(theirs) if theirs.member => Node::default(),
            Some(theirs) => {
                Node { member: ours.member, children: ours.children.recursive_difference(&theirs.children) }
            }
        })
    }

    fn combine(&self, each: impl Fn(&PathElement, &Node) -> Node) -> Self {
        let node = |(element, ours)| {
            Some((PathElement::clone(element), each(element, ours))).filter(|(_, node)| !node.is_empty())
        };
        Self { nodes: self.nodes.iter().filter_map(node).collect() }
    }

    /// Every path of the set, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<&PathElement>> {
        fn visit<'a>(
            set: &'a FieldSet,
            prefix: &mut Vec<&'a PathElement>,
            out: &mut Vec<Vec<&'a PathElement>>,
        ) {
            for (element, member, children) in set.entries() {
                prefix.push(element);
                if member {
                    out.push(prefix.clone());
                }
                visit(children, prefix, out);
                prefix.pop();
            }
        }
        let mut out = Vec::new();
        visit(self, &mut Vec::new(), &mut out);
        out
    }
}

impl<P: IntoIterator<Item = PathElement>> FromIterator<P> for FieldSet {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path);
        }
        set
    }
}

/// One path a line: `.spec.replicas`.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, path) in self.paths().into_iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            for element in path {
                element.fmt(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sets() -> impl Strategy<Value = FieldSet> {
        let element = prop_oneof![
            "[abc]".prop_map(PathElement::Field),
            "[ab]".prop_map(|text| PathElement::Value(format!("\"{text}\""))),
        ];
        prop::collection::vec(prop::collection::vec(element, 1..4), 0..6)
            .prop_map(|paths| paths.into_iter().collect())
    }

    fn plain(set: &FieldSet) -> std::collections::BTreeSet<Vec<PathElement>> {
        set.paths().into_iter().map(|path| path.into_iter().cloned().collect()).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_paths(a in sets(), b in sets()) {
            let (pa, pb) = (plain(&a), plain(&b));
            prop_assert_eq!(plain(&a.union(&b)), pa.union(&pb).cloned().collect());
            prop_assert_eq!(plain(&a.intersection(&b)), pa.intersection(&pb).cloned().collect());
            prop_assert_eq!(plain(&a.difference(&b)), pa.difference(&pb).cloned().collect());
            let below = |path: &Vec<PathElement>| pb.iter().any(|prefix| path.starts_with(prefix));
            prop_assert_eq!(plain(&a.recursive_difference(&b)), pa.iter().filter(|path| !below(path)).cloned().collect());
            prop_assert_eq!(a.is_empty(), pa.is_empty());
            for path in &pa {
                prop_assert!(a.contains(path));
            }
        }

        #[test]
        fn equal_sets_are_equal_values(a in sets(), b in sets()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
            prop_assert_eq!(a.union(&b).difference(&b).union(&b), a.union(&b));
            prop_assert!(a.difference(&a).is_empty());
            prop_assert_eq!(FieldSet::from_json(&a.to_json()), Ok(a));
        }
    }
}
