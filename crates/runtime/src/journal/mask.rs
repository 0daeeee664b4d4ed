//! Keeps the contents of Secrets out of journals, in a way that a replay still works: every value
//! is replaced by the same stand-in wherever it occurs.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Shorter values are not looked for in other objects: they would be found everywhere.
const SHORTEST: usize = 4;

/// Values to replace, longest first.
#[derive(Debug, Default)]
pub(super) struct Mask {
    salt: [u8; 16],
    values: BTreeMap<String, String>,
}

impl Mask {
    pub(super) fn new(salt: [u8; 16]) -> Self {
        Self { salt, values: BTreeMap::new() }
    }

    /// Learns the values of every Secret in a tree.
    pub(super) fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                if map.get("kind").and_then(Value::as_str) == Some("Secret") {
                    let data = map.get("data").and_then(Value::as_object);
                    for encoded in data.into_iter().flat_map(|d| d.values()).filter_map(Value::as_str) {
                        self.add_encoded(encoded);
                    }
                    let texts = map.get("stringData").and_then(Value::as_object);
                    for text in texts.into_iter().flat_map(|d| d.values()).filter_map(Value::as_str) {
                        let stand_in = self.stand_in(text.as_bytes());
                        self.values.insert(text.to_owned(), stand_in);
                    }
                }
                map.values().for_each(|v| self.learn(v));
            }
            Value::Array(list) => list.iter().for_each(|v| self.learn(v)),
            _ => {}
        }
    }

    fn add_encoded(&mut self, encoded: &str) {
        let Some(plain) = decode(encoded) else { return };
        let stand_in = self.stand_in(&plain);
        self.values.insert(encoded.to_owned(), encode(stand_in.as_bytes()));
        if let Ok(text) = String::from_utf8(plain)
            && text.len() >= SHORTEST
        {
            self.values.insert(text, stand_in);
        }
    }

    fn stand_in(&self, plain: &[u8]) -> String {
        let digest = Sha256::new().chain_update(self.salt).chain_update(plain).finalize();
        format!("masked-{}", hex::encode(digest.get(..6).unwrap_or_default()))
    }

    /// Replaces what was learnt.
    pub(super) fn apply(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (secret, stand_in) in self.values.iter().rev().filter(|(s, _)| !s.is_empty()) {
                    if text == secret || (secret.len() >= SHORTEST && text.contains(secret.as_str())) {
                        *text = text.replace(secret.as_str(), stand_in);
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|v| self.apply(v)),
            Value::Object(map) => {
                // What a manager last applied holds the values a second time, inside a text.
                if map.get("kind").and_then(Value::as_str) == Some("Secret")
                    && let Some(annotations) = map
                        .get_mut("metadata")
                        .and_then(|m| m.get_mut("annotations"))
                        .and_then(Value::as_object_mut)
                {
                    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
                }
                map.values_mut().for_each(|v| self.apply(v));
            }
            _ => {}
        }
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_value_of_a_secret_is_left_anywhere() {
        let secret =
            json!({"kind": "Secret", "data": {"password": encode(b"hunter2!"), "pin": encode(b"42")}});
        let mut output = json!({"env": [{"value": "postgres://u:hunter2!@db"}, {"value": "42"}], "copy": encode(b"hunter2!")});
        let mut mask = Mask::new([1; 16]);
        mask.learn(&secret);
        let mut masked = secret.clone();
        mask.apply(&mut masked);
        mask.apply(&mut output);
        let text = format!("{masked}{output}");
        assert!(
            !text.contains("hunter2!")
                && !text.contains(&encode(b"hunter2!"))
                && !text.contains(&encode(b"42")),
            "{text}"
        );
        let stand_in =
            String::from_utf8(decode(masked["data"]["password"].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(
            output["env"][0]["value"],
            format!("postgres://u:{stand_in}@db"),
            "the same stand-in everywhere"
        );
    }
}
