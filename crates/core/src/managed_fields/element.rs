//! One step of an owned path.

use std::fmt;

use serde_json::{Map, Value};

/// One step of an owned path. Keys and values are kept as canonical JSON text (compact, keys sorted, `1` for `1.0`),
/// which is what `FieldsV1` has too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathElement {
    /// A field of an object: `f:replicas`.
    Field(String),
    /// The entry of a list that has these key fields: `k:{"name":"app"}`.
    Key(String),
    /// The entry of a set: `v:"example.com/finalizer"`.
    Value(String),
    /// The position in a list: `i:0`. Only read, never made.
    Index(i64),
}

impl PathElement {
    /// The entry of a list with these key fields.
    #[must_use]
    pub fn key(fields: &Map<String, Value>) -> Self {
        Self::Key(canonical(&Value::Object(fields.clone())))
    }

    /// The entry of a set.
    #[must_use]
    pub fn value(value: &Value) -> Self {
        Self::Value(canonical(value))
    }

    /// Reads a key of `FieldsV1`. None for what is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "i" => rest.parse().ok().map(Self::Index),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(fields) if !fields.is_empty() => Some(Self::key(&fields)),
                _ => None,
            },
            "v" => serde_json::from_str(rest).ok().map(|value| Self::value(&value)),
            _ => None,
        }
    }

    /// The key of `FieldsV1`.
    #[must_use]
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(text) => format!("k:{text}"),
            Self::Value(text) => format!("v:{text}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// Prints as conflicts do: `.replicas`, `[name="app"]`, `[="value"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Value(text) => write!(f, "[={text}]"),
            Self::Key(text) => {
                let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
        }
    }
}

fn canonical(value: &Value) -> String {
    fn write(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<_> = map.iter().collect();
                keys.sort_unstable_by_key(|(key, _)| key.as_str());
                out.push('{');
                for (position, (key, value)) in keys.into_iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    write(value, out);
                }
                out.push('}');
            }
            Value::Array(list) => {
                out.push('[');
                for (position, value) in list.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    write(value, out);
                }
                out.push(']');
            }
            Value::Number(number) => match number.as_f64() {
                #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                    out.push_str(&(float as i64).to_string());
                }
                _ => out.push_str(&number.to_string()),
            },
            other => out.push_str(&other.to_string()),
        }
    }
    let mut out = String::new();
    write(value, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (key, shown) in [
            ("f:replicas", ".replicas"),
            ("f:app.kubernetes.io/name", ".app.kubernetes.io/name"),
            ("f:a:b", ".a:b"),
            (r#"k:{"containerPort":80,"protocol":"TCP"}"#, r#"[containerPort=80,protocol="TCP"]"#),
            (r#"v:"a""#, r#"[="a"]"#),
            ("v:1", "[=1]"),
            ("i:3", "[3]"),
        ] {
            let element = PathElement::parse(key).expect(key);
            assert_eq!(element.to_key(), key);
            assert_eq!(element.to_string(), shown);
        }
        assert_eq!(
            PathElement::parse(r#"k:{"b":1.0,"a":2}"#).map(|e| e.to_key()).as_deref(),
            Some(r#"k:{"a":2,"b":1}"#)
        );
        for bad in ["", ".", "f", "x:a", "k:{}", "k:1", "v:", "i:a"] {
            assert_eq!(PathElement::parse(bad), None, "{bad}");
        }
    }
}
