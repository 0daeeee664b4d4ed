//! Where a field is, printed as Kubernetes prints it.

use std::fmt;

/// One step from a value to something inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A named field of an object: `.name`.
    Field(String),
    /// A key of a map whose keys are data: `[key]`.
    Key(String),
    /// A position in a list, from 0: `[0]`.
    Index(usize),
}

/// The path of a field, from the root of an object.
///
/// Prints as `k8s.io/apimachinery/pkg/util/validation/field` does: `spec.containers[0].image`,
/// `metadata.labels[app.kubernetes.io/name]`; the root itself prints as `<nil>`, as there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The object itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// A path of field names: `FieldPath::of(["metadata", "name"])`.
    pub fn of<S: Into<String>>(fields: impl IntoIterator<Item = S>) -> Self {
        Self(fields.into_iter().map(|field| Step::Field(field.into())).collect())
    }

    /// A path of these steps.
    #[must_use]
    pub const fn from_steps(steps: Vec<Step>) -> Self {
        Self(steps)
    }

    /// This path and one more field.
    #[must_use]
    pub fn field(&self, name: impl Into<String>) -> Self {
        self.then(Step::Field(name.into()))
    }

    /// This path and one more key of a map.
    #[must_use]
    pub fn key(&self, name: impl Into<String>) -> Self {
        self.then(Step::Key(name.into()))
    }

    /// This path and one more position of a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// The same path seen from further up: `prefix` and then this.
    #[must_use]
    pub fn under(self, prefix: impl Into<Self>) -> Self {
        let mut steps = prefix.into().0;
        steps.extend(self.0);
        Self(steps)
    }

    /// The steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the object itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }
}

/// Reads what `Display` prints: `spec.containers[0].image`, `data[a.b]`. Any text is a path: what does not fit is a name.
impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((inside, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                steps.push(inside.parse().map_or_else(|_| Step::Key(inside.to_owned()), Step::Index));
                rest = after;
                continue;
            }
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let first = name.chars().next().map_or(0, char::len_utf8);
            let end = name
                .char_indices()
                .skip(1)
                .find(|(_, c)| matches!(c, '.' | '['))
                .map_or(name.len(), |(at, _)| at);
            let (name, after) = name.split_at(end.max(first));
            if !name.is_empty() {
                steps.push(Step::Field(name.to_owned()));
            }
            rest = after;
        }
        Self(steps)
    }
}

impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for FieldPath {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<nil>");
        }
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "[{name}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Longest name that a reported path repeats, in bytes: one hostile key must not stand in every error below it.
const MAX_NAME: usize = 256;

/// The name, cut if it is too long to be repeated.
pub(crate) fn reported(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let end = (0..=MAX_NAME).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", name.get(..end).unwrap_or_default())
}

/// A path kept on the stack while walking a value: it costs nothing until an error needs it.
#[derive(Clone, Copy)]
pub(crate) enum Trail<'a> {
    Root,
    Field(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl Trail<'_> {
    pub(crate) fn to_path(self) -> FieldPath {
        let mut steps = Vec::new();
        let mut at = self;
        loop {
            match at {
                Trail::Root => break,
                Trail::Field(parent, name) => {
                    steps.push(Step::Field(reported(name)));
                    at = *parent;
                }
                Trail::Index(parent, index) => {
                    steps.push(Step::Index(index));
                    at = *parent;
                }
            }
        }
        steps.reverse();
        FieldPath(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_kubernetes_does() {
        let image = FieldPath::of(["spec", "containers"]).index(0).field("image");
        assert_eq!(image.to_string(), "spec.containers[0].image");
        let label = FieldPath::of(["metadata", "labels"]).key("app.kubernetes.io/name");
        assert_eq!(label.to_string(), "metadata.labels[app.kubernetes.io/name]");
        assert_eq!(FieldPath::root().to_string(), "<nil>");
        assert_eq!(FieldPath::root().index(3).field("a").to_string(), "[3].a");
    }

    #[test]
    fn reads_what_it_prints() {
        let path = FieldPath::of(["spec", "list"]).index(0).field("name");
        assert_eq!(FieldPath::from("spec.list[0].name"), path);
        let path = FieldPath::of(["metadata", "labels"]).key("app.kubernetes.io/name");
        assert_eq!(FieldPath::from("metadata.labels[app.kubernetes.io/name]"), path);
        assert_eq!(FieldPath::from(""), FieldPath::root());
        assert_eq!(FieldPath::from("a").under("spec[1]"), FieldPath::of(["spec"]).index(1).field("a"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_path(text in "[a-z\\[\\].0-9ü]{0,12}") {
            let path = FieldPath::from(text.as_str());
            proptest::prop_assert!(path.steps().len() <= text.len());
        }
    }

    #[test]
    fn a_trail_becomes_the_same_path() {
        let root = Trail::Root;
        let spec = Trail::Field(&root, "spec");
        let list = Trail::Field(&spec, "containers");
        let item = Trail::Index(&list, 1);
        assert_eq!(item.to_path(), FieldPath::of(["spec", "containers"]).index(1));
    }
}
