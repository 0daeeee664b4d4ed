//! Selecting objects by a few of their fields.

use std::fmt;
use std::str::FromStr;

use super::error::SelectorError;
use super::label::{MAX_LENGTH, MAX_REQUIREMENTS};

/// How a field compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    /// The field, such as `metadata.name`.
    pub path: String,
    /// How it compares.
    pub op: FieldOperator,
    /// With what. A field that is not there is the empty text.
    pub value: String,
}

/// A field selector: all of its requirements must hold. The default one selects everything.
///
/// Which fields a kind can be selected by is for the server to say; look at [`FieldSelector::requirements`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Reads the form of query strings: `metadata.name=a,status.phase!=Running`. In values, `\,`, `\=` and `\\` stand
    /// for themselves. The grammar is that of `k8s.io/apimachinery/pkg/fields`.
    ///
    /// # Errors
    /// [`SelectorError`] quotes the part that is not understood.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_LENGTH {
            return Err(SelectorError::TooLarge(format!("{} bytes, at most {MAX_LENGTH}", text.len())));
        }
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            if requirements.len() == MAX_REQUIREMENTS {
                return Err(SelectorError::TooLarge(format!("more than {MAX_REQUIREMENTS} requirements")));
            }
            let (path, op, value) = split_term(term).ok_or_else(|| {
                SelectorError::Syntax(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            requirements.push(FieldRequirement { path: path.to_owned(), op, value: unescape(value)? });
        }
        Ok(Self { requirements })
    }

    /// What must hold.
    #[must_use]
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The fields it looks at.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|requirement| requirement.path.as_str())
    }

    /// Whether every object is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is selected whose fields this function knows.
    #[must_use]
    pub fn matches<S: AsRef<str>>(&self, field: impl Fn(&str) -> Option<S>) -> bool {
        self.requirements.iter().all(|requirement| {
            let found = field(&requirement.path);
            let equal = found.as_ref().map_or("", S::as_ref) == requirement.value;
            equal == (requirement.op == FieldOperator::Equals)
        })
    }

    /// The value that a field must have exactly, if there is such a requirement: for reading one object instead of all.
    #[must_use]
    pub fn exact(&self, path: &str) -> Option<&str> {
        let exact = |one: &&FieldRequirement| one.path == path && one.op == FieldOperator::Equals;
        self.requirements.iter().find(exact).map(|one| one.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.extend(text.get(start..));
    terms
}

fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    term.char_indices().find_map(|(at, _)| {
        let (path, rest) = term.split_at(at);
        let operators =
            [("!=", FieldOperator::NotEquals), ("==", FieldOperator::Equals), ("=", FieldOperator::Equals)];
        operators.into_iter().find_map(|(text, op)| rest.strip_prefix(text).map(|value| (path, op, value)))
    })
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(SelectorError::Syntax(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(SelectorError::Syntax(format!(
                    "invalid field selector: unescaped character in value: '{c}'"
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

impl FromStr for FieldSelector {
    type Err = SelectorError;
    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let op = if requirement.op == FieldOperator::Equals { "=" } else { "!=" };
            let value = requirement.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{op}{value}", requirement.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(text: &str) -> Vec<(String, FieldOperator, String)> {
        let selector = FieldSelector::parse(text).expect(text);
        selector.requirements().iter().cloned().map(|one| (one.path, one.op, one.value)).collect()
    }

    #[test]
    fn reads_terms() {
        use FieldOperator::{Equals, NotEquals};
        let term = |path: &str, op, value: &str| (path.to_owned(), op, value.to_owned());
        assert_eq!(terms(""), []);
        assert_eq!(
            terms("a=b,c==d,,e!=f"),
            [term("a", Equals, "b"), term("c", Equals, "d"), term("e", NotEquals, "f")]
        );
        assert_eq!(terms(r"a=b\,c\=d\\"), [term("a", Equals, r"b,c=d\")]);
        assert_eq!(terms("a="), [term("a", Equals, "")]);
        for bad in ["a", "a=b=c", r"a=\x", r"a=b\", "!a"] {
            assert!(FieldSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn selects_by_text() {
        let field = |path: &str| (path == "metadata.name").then_some("a");
        let matches = |text: &str| FieldSelector::parse(text).expect(text).matches(field);
        assert!(
            matches("")
                && matches("metadata.name=a")
                && matches("status.phase!=Running")
                && matches("status.phase=")
        );
        assert!(!matches("metadata.name!=a") && !matches("metadata.name=a,metadata.name=b"));
        let selector = FieldSelector::parse("metadata.namespace!=x,metadata.name=a").expect("valid");
        assert_eq!(
            (selector.exact("metadata.name"), selector.exact("metadata.namespace")),
            (Some("a"), None)
        );
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(text in "[ab=!,\\\\]{0,16}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
            }
        }
    }
}
