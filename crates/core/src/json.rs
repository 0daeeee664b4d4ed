//! JSON from outside: bounded, and without the things that two readers understand differently.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::field_path::{FieldPath, Step, reported};

/// What a document may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest document, in bytes.
    pub bytes: usize,
    /// Deepest nesting of lists and objects. Never more than [`Limits::MAX_DEPTH`].
    pub depth: usize,
}

impl Limits {
    /// The deepest nesting that any caller may allow; the reader's own stack is bounded by it.
    pub const MAX_DEPTH: usize = 120;
    /// What the kube-apiserver takes in a request body: 3 MiB.
    pub const REQUEST: Self = Self { bytes: 3 * 1024 * 1024, depth: 100 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::REQUEST
    }
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The document is larger than the limit.
    #[error("the JSON document has {actual} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        actual: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Lists and objects are nested too deeply.
    #[error("{path}: JSON is nested more than {limit} deep; flatten it")]
    TooDeep {
        /// Where the limit was passed.
        path: FieldPath,
        /// The limit.
        limit: usize,
    },
    /// A key stands twice in one object.
    #[error("{path}: the key stands twice in its object; keep one")]
    DuplicateKey {
        /// The key's second place.
        path: FieldPath,
    },
    /// Not JSON. The message has line and column.
    #[error("not valid JSON: {0}")]
    Syntax(String),
}

/// Reads one JSON document and nothing after it.
///
/// # Errors
/// [`JsonError`] if the document is too large or too deep, is not JSON, has data after its end, or has a key twice in
/// one object (readers differ on which of the two counts, so neither is taken).
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Value, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::TooLarge { actual: bytes.len(), limit: limits.bytes });
    }
    let state = State { limit: limits.depth.min(Limits::MAX_DEPTH), failure: Cell::new(None) };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let place = Place { state: &state, trail: None, depth: 0 };
    let outcome = place.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match (outcome, state.failure.take()) {
        (_, Some(failure)) => Err(failure),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(JsonError::Syntax(error.to_string())),
    }
}

struct State {
    limit: usize,
    failure: Cell<Option<JsonError>>,
}

impl State {
    /// Remembers what serde's error could only carry as text.
    fn fail<E: serde::de::Error>(&self, failure: JsonError) -> E {
        let message = failure.to_string();
        self.failure.set(Some(failure));
        E::custom(message)
    }
}

enum Here<'a> {
    Key(&'a str),
    Index(usize),
}

struct Place<'a> {
    state: &'a State,
    trail: Option<(&'a Place<'a>, Here<'a>)>,
    depth: usize,
}

impl Place<'_> {
    fn path(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = self;
        while let Some((parent, here)) = &at.trail {
            steps.push(match here {
                Here::Key(key) => Step::Field(reported(key)),
                Here::Index(index) => Step::Index(*index),
            });
            at = parent;
        }
        steps.reverse();
        steps
    }

    fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth < self.state.limit {
            return Ok(());
        }
        let path = FieldPath::from_steps(self.path());
        Err(self.state.fail(JsonError::TooDeep { path, limit: self.state.limit }))
    }
}

impl<'de> DeserializeSeed<'de> for &Place<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut list = Vec::new();
        loop {
            let place = Place {
                state: self.state,
                trail: Some((self, Here::Index(list.len()))),
                depth: self.depth + 1,
            };
            match access.next_element_seed(&place)? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                let mut steps = self.path();
                steps.push(Step::Field(reported(&key)));
                return Err(self.state.fail(JsonError::DuplicateKey { path: FieldPath::from_steps(steps) }));
            }
            let value = {
                let place =
                    Place { state: self.state, trail: Some((self, Here::Key(&key))), depth: self.depth + 1 };
                access.next_value_seed(&place)?
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// How deeply a value is nested: 0 for a scalar, 1 for a list or object of scalars.
///
/// Its own stack use is bounded: it stops counting at `limit + 1`.
pub(crate) fn depth_within(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(list) => limit > 0 && list.iter().all(|item| depth_within(item, limit - 1)),
        Value::Object(map) => limit > 0 && map.values().all(|item| depth_within(item, limit - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, JsonError> {
        parse(text.as_bytes(), Limits { bytes: 1000, depth: 3 })
    }

    #[test]
    fn reads_what_is_json() {
        assert_eq!(
            read(r#" {"a":[1,-2,1.5,null,true,"x"]} "#),
            Ok(json!({"a": [1, -2, 1.5, null, true, "x"]}))
        );
        assert_eq!(read("18446744073709551615"), Ok(json!(u64::MAX)));
    }

    #[test]
    fn a_key_may_stand_once() {
        let error = read(r#"{"spec":{"list":[{"a":1,"a":2}]}}"#);
        assert!(matches!(&error, Err(JsonError::TooDeep { .. })), "{error:?}");
        let error = read(r#"{"spec":[{"a":1,"\u0061":2}]}"#);
        let path = FieldPath::of(["spec"]).index(0).field("a");
        assert_eq!(error, Err(JsonError::DuplicateKey { path }));
    }

    #[test]
    fn depth_size_and_rest_are_bounded() {
        assert_eq!(read("[[[1]]]"), Ok(json!([[[1]]])));
        let path = FieldPath::root().index(0).index(0).index(0);
        assert_eq!(read("[[[[1]]]]"), Err(JsonError::TooDeep { path, limit: 3 }));
        assert!(matches!(read(&"[".repeat(999)), Err(JsonError::TooDeep { .. })));
        assert!(matches!(read(&" ".repeat(1001)), Err(JsonError::TooLarge { actual: 1001, limit: 1000 })));
        assert!(matches!(read("{} {}"), Err(JsonError::Syntax(_))));
        assert!(matches!(read(""), Err(JsonError::Syntax(_))));
        assert!(matches!(read("1e999"), Err(JsonError::Syntax(_))));
        let deep = "[".repeat(100_000);
        let limits = Limits { bytes: usize::MAX, depth: usize::MAX };
        assert!(matches!(
            parse(deep.as_bytes(), limits),
            Err(JsonError::TooDeep { limit: Limits::MAX_DEPTH, .. })
        ));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"0-9a-z\\\\ ]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn agrees_with_serde_json(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = parse(&bytes, Limits::REQUEST) {
                prop_assert_eq!(Some(value), serde_json::from_slice(&bytes).ok());
            }
        }
    }
}
