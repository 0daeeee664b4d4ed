//! Which objects outside its release a flight may read.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use horchestra_core::ObjectRef;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pattern `[namespace/]Kind[.group][:name]`. A part that is left out, and one that is exactly
/// `*`, matches anything; everything else is compared to the letter. `*` alone matches all objects,
/// the empty pattern none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceMatcher {
    text: String,
}

impl ResourceMatcher {
    /// Whether it covers an object.
    pub fn matches(&self, object: &ObjectRef) -> bool {
        match self.text.as_str() {
            "" => return false,
            "*" => return true,
            _ => {}
        }
        let part = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let (namespace, rest) = self.text.split_once('/').map_or(("*", &*self.text), |(n, r)| (n, r));
        let (kind, name) = rest.split_once(':').map_or((rest, "*"), |(k, n)| (k, n));
        part(namespace, &object.namespace) && part(name, &object.name) && part(kind, &object.kind.to_string())
    }
}

impl FromStr for ResourceMatcher {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self { text: text.to_owned() })
    }
}

impl fmt::Display for ResourceMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ResourceMatcher {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ResourceMatcher {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self { text: String::deserialize(d)? })
    }
}

impl JsonSchema for ResourceMatcher {
    fn schema_name() -> Cow<'static, str> {
        "ResourceMatcher".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Yoke's own test of its matchers.
    #[test]
    fn vectors() {
        let object: ObjectRef = "foo/Deployment.apps:test".parse().unwrap();
        let matches = |text: &str| ResourceMatcher { text: text.to_owned() }.matches(&object);
        for yes in [
            "*",
            "foo/Deployment.apps:test",
            "Deployment.apps:test",
            "Deployment.apps",
            "*/*",
            "*/Deployment.apps",
            "foo/Deployment.apps:*",
            "*/Deployment.apps:*",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in [
            "",
            "/",
            "Deployment",
            "bar/Deployment.apps",
            "Deployment.custom:test",
            "Deployment.apps:other",
            "bar/*",
        ] {
            assert!(!matches(no), "{no}");
        }
    }
}
