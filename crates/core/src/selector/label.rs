//! Selecting objects by their labels.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::error::SelectorError;
use super::name::{check_key, check_value};
use super::parse::parse;

/// Longest selector, in bytes.
pub(super) const MAX_LENGTH: usize = 64 * 1024;
/// Most requirements of a selector.
pub(super) const MAX_REQUIREMENTS: usize = 256;
/// Most values of one requirement.
pub(super) const MAX_VALUES: usize = 4096;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// The label is there, with one of the values.
    In,
    /// The label is not there, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is there, an integer, and more than the value.
    GreaterThan,
    /// The label is there, an integer, and less than the value.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without doubles.
    values: Vec<String>,
}

impl Requirement {
    /// A requirement that follows Kubernetes' rules for keys, values and their number.
    ///
    /// # Errors
    /// [`SelectorError::Invalid`] says which rule.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, SelectorError> {
        check_key(key).map_err(|detail| SelectorError::invalid("key", key, detail))?;
        let refuse = |detail: &str| Err(SelectorError::invalid("values", values.join(","), detail));
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                return refuse("for 'in', 'notin' operators, values set can't be empty");
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                return refuse("values set must be empty for exists and does not exist");
            }
            Operator::GreaterThan | Operator::LessThan => match values.as_slice() {
                [one] if one.parse::<i64>().is_ok() => {}
                [_] => return refuse("for 'Gt', 'Lt' operators, the value must be an integer"),
                _ => return refuse("for 'Gt', 'Lt' operators, exactly one value is required"),
            },
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            check_value(value).map_err(|detail| {
                SelectorError::invalid(format!("values[{index}][{key}]"), value.as_str(), detail)
            })?;
        }
        values.sort_unstable();
        values.dedup();
        Ok(Self { key: key.to_owned(), operator, values })
    }

    /// The label's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    #[must_use]
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// What it compares with, sorted.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value, or its absence, is what is asked for.
    #[must_use]
    pub fn matches(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.binary_search_by(|value| value.as_str().cmp(label)).is_ok();
        let compare = |holds: fn(i64, i64) -> bool| {
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
            let limit = number(self.values.first().map(String::as_str));
            number(label).zip(limit).is_some_and(|(label, limit)| holds(label, limit))
        };
        match self.operator {
            Operator::In => label.is_some_and(listed),
            Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compare(|label, limit| label > limit),
            Operator::LessThan => compare(|label, limit| label < limit),
        }
    }
}

/// A label selector: all of its requirements must hold. The default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// A selector that no object matches: what a missing `LabelSelector` means in JSON.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Reads the form of query strings: `app=web,tier in (front, back),!canary`. The empty text selects everything.
    ///
    /// The grammar is that of `k8s.io/apimachinery/pkg/labels`.
    ///
    /// # Errors
    /// [`SelectorError`] quotes what was found and says what was expected.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Ok(Self { requirements: parse(text)?, nothing: false })
    }

    /// Reads the form of objects: `{"matchLabels": {..}, "matchExpressions": [..]}`. `{}` selects everything, null
    /// nothing.
    ///
    /// # Errors
    /// [`SelectorError`] names the field.
    pub fn from_json(value: &Value) -> Result<Self, SelectorError> {
        let Some(selector) = value.as_object() else {
            return if value.is_null() { Ok(Self::nothing()) } else { Err(mistyped("", "an object")) };
        };
        let mut requirements = Vec::new();
        match selector.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                bound(labels.len(), MAX_REQUIREMENTS, "requirements")?;
                for (key, value) in labels {
                    let value =
                        value.as_str().ok_or_else(|| mistyped(&format!("matchLabels[{key}]"), "a string"))?;
                    requirements.push(Requirement::new(key, Operator::In, vec![value.to_owned()])?);
                }
            }
            Some(_) => return Err(mistyped("matchLabels", "an object")),
        }
        match selector.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                bound(requirements.len() + list.len(), MAX_REQUIREMENTS, "requirements")?;
                for (index, expression) in list.iter().enumerate() {
                    requirements.push(expression_from_json(index, expression)?);
                }
            }
            Some(_) => return Err(mistyped("matchExpressions", "a list")),
        }
        Ok(Self { requirements, nothing: false })
    }

    /// Whether an object with these labels, as they stand in `metadata.labels`, is selected.
    #[must_use]
    pub fn matches(&self, labels: &Map<String, Value>) -> bool {
        self.matches_with(|key| labels.get(key).and_then(Value::as_str))
    }

    /// Whether an object is selected whose labels this function knows.
    #[must_use]
    pub fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing
            && self.requirements.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether every object is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// What must hold. Empty also for [`LabelSelector::nothing`].
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

fn expression_from_json(index: usize, expression: &Value) -> Result<Requirement, SelectorError> {
    let at = |field: &str| format!("matchExpressions[{index}].{field}");
    let text = |field: &str| {
        expression.get(field).and_then(Value::as_str).ok_or_else(|| mistyped(&at(field), "a string"))
    };
    let operator = match text("operator")? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => return Err(SelectorError::invalid(at("operator"), other, "not a valid selector operator")),
    };
    let values = match expression.get("values") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            bound(list.len(), MAX_VALUES, "values")?;
            let value = |value: &Value| {
                value.as_str().map(str::to_owned).ok_or_else(|| mistyped(&at("values"), "strings"))
            };
            list.iter().map(value).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(mistyped(&at("values"), "a list")),
    };
    Requirement::new(text("key")?, operator, values)
}

fn mistyped(field: &str, wanted: &str) -> SelectorError {
    SelectorError::invalid(if field.is_empty() { "selector" } else { field }, "", format!("must be {wanted}"))
}

fn bound(count: usize, limit: usize, what: &str) -> Result<(), SelectorError> {
    if count > limit {
        Err(SelectorError::TooLarge(format!("{count} {what}, at most {limit}")))
    } else {
        Ok(())
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;
    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

/// Prints the form of query strings. [`LabelSelector::nothing`] has no such form and prints as a selector that nothing
/// can match.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nothing {
            return f.write_str("nothing,!nothing");
        }
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let (key, values) = (&requirement.key, &requirement.values);
            match (requirement.operator, values.as_slice()) {
                (Operator::Exists, _) => write!(f, "{comma}{key}")?,
                (Operator::DoesNotExist, _) => write!(f, "{comma}!{key}")?,
                (Operator::In, [one]) => write!(f, "{comma}{key}={one}")?,
                (Operator::NotIn, [one]) => write!(f, "{comma}{key}!={one}")?,
                (Operator::In, _) => write!(f, "{comma}{key} in ({})", values.join(","))?,
                (Operator::NotIn, _) => write!(f, "{comma}{key} notin ({})", values.join(","))?,
                (Operator::GreaterThan, _) => write!(f, "{comma}{key}>{}", values.join(""))?,
                (Operator::LessThan, _) => write!(f, "{comma}{key}<{}", values.join(""))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: Value) -> bool {
        let Value::Object(labels) = labels else { panic!("labels are an object") };
        LabelSelector::parse(selector).expect(selector).matches(&labels)
    }

    #[test]
    fn matches_as_kubernetes_does() {
        let web = || json!({"app": "web", "tier": "front", "n": "5", "e": ""});
        for selector in [
            "",
            " ",
            "app=web",
            "app==web",
            "app = web , tier = front",
            "app!=db",
            "other!=x",
            "app in (db, web)",
            "app notin (db)",
            "other notin (x)",
            "app",
            "!other",
            "! other",
            "n>4",
            "n<6",
            "e=",
            "e in (,a)",
            "e in (a,)",
            "app in (web),!x,tier",
            "app=web,app!=db",
        ] {
            assert!(selects(selector, web()), "{selector}");
        }
        for selector in
            ["app=db", "app!=web", "other", "!app", "other in (x)", "app notin (web)", "n>5", "app>1", "app="]
        {
            assert!(!selects(selector, web()), "{selector}");
        }
        // A keyword may be a key, and a value.
        assert!(selects("in in (in,notin)", json!({"in": "notin"})));
    }

    #[test]
    fn refuses_what_kubernetes_refuses() {
        for selector in [
            ",",
            "a,",
            ",a",
            "a,,b",
            "a b",
            "a=b c",
            "=a",
            "a in",
            "a in b",
            "a in ()",
            "a in (b",
            "a notin (b))",
            "!a=b",
            "a=!b",
            "a>b",
            "a in (b c)",
            "-a",
            "a=-b",
            "x/y/z",
            "/a",
            "a/",
            "a=b/c",
            "!",
            "!!a",
            "X.com/a",
            "a in (b)c",
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
        let long = "a".repeat(64);
        assert!(LabelSelector::parse(&long).is_err());
        assert!(LabelSelector::parse(&format!("a={long}")).is_err());
        assert!(LabelSelector::parse(&"a,".repeat(40_000)).is_err());
        assert!(LabelSelector::parse(&format!("{}a", "a,".repeat(MAX_REQUIREMENTS))).is_err());
        let error = LabelSelector::parse("a,,b").expect_err("two commas").to_string();
        assert_eq!(error, "unable to parse requirement: found ',', expected: identifier after ','");
    }

    #[test]
    fn reads_json() {
        let selector = LabelSelector::from_json(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "DoesNotExist"}],
        }));
        assert_eq!(selector, LabelSelector::parse("app=web,tier in (a,b),!x"));
        assert_eq!(LabelSelector::from_json(&json!({})).map(|s| s.is_everything()), Ok(true));
        let nothing = LabelSelector::from_json(&Value::Null).expect("null is a selector");
        assert!(!nothing.matches(&Map::new()) && !nothing.is_everything());
        for bad in [
            json!([]),
            json!({"matchLabels": []}),
            json!({"matchLabels": {"a": 1}}),
            json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"operator": "Exists"}]}),
        ] {
            assert!(LabelSelector::from_json(&bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-c=!,() <>/.in\\-]{0,24}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
            }
        }

        #[test]
        fn a_selector_and_its_opposite(key in "[ab]", value in "[ab]?", labels in prop::collection::btree_map("[ab]", "[ab]?", 0..3)) {
            let labels: Map<String, Value> = labels.into_iter().map(|(k, v)| (k, Value::from(v))).collect();
            for (one, other) in [
                (format!("{key}={value}"), format!("{key}!={value}")),
                (format!("{key} in ({value},c)"), format!("{key} notin ({value},c)")),
                (key.clone(), format!("!{key}")),
            ] {
                let (one, other) = (LabelSelector::parse(&one).expect("valid"), LabelSelector::parse(&other).expect("valid"));
                prop_assert_ne!(one.matches(&labels), other.matches(&labels));
            }
        }
    }
}
