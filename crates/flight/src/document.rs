//! Texts from outside as trees: JSON or YAML, one document or many.

use horchestra_core::json::{self, JsonError, Limits};
use horchestra_core::{Error, Result};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The largest text in bytes. What a flight prints is bounded by its own limit before it comes here.
pub const MAX_BYTES: usize = 64 << 20;
/// The deepest nesting of lists and maps, as in a request to an API server.
pub const MAX_DEPTH: usize = 100;
/// The most documents in one text.
pub const MAX_DOCUMENTS: usize = 10_000;
/// The most values in one YAML text, aliases included.
const MAX_YAML_NODES: usize = 2_000_000;

const LIMITS: Limits = Limits { bytes: MAX_BYTES, depth: MAX_DEPTH };

/// The documents of a text that is one JSON value, several of them in a row, or YAML with `---` between
/// its documents. Documents with nothing in them are left out. Anything malformed, wherever it
/// stands, is an error: a document is never dropped silently. So are duplicate keys, since readers
/// differ on which of two counts.
pub fn documents(what: &str, bytes: &[u8]) -> Result<Vec<Value>> {
    let wrong = |e: JsonError| Error::invalid(what, e);
    if bytes.len() > MAX_BYTES {
        return Err(wrong(JsonError::TooLarge { actual: bytes.len(), limit: MAX_BYTES }));
    }
    let text = bytes.trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return yaml(what, bytes);
    }
    match json::parse(bytes, LIMITS) {
        Ok(value) => Ok(vec![value]),
        Err(JsonError::Syntax(cause)) => match json_stream(bytes) {
            Ok(Some(documents)) => Ok(documents),
            // `{a: b}` and JSON documents with `---` between them are YAML.
            Ok(None) => yaml(what, bytes)
                .map_err(|e| Error::invalid(what, format!("is neither JSON ({cause}) nor YAML ({e})"))),
            Err(e) => Err(wrong(e)),
        },
        Err(e) => Err(wrong(e)),
    }
}

/// Exactly one document.
pub fn document(what: &str, bytes: &[u8]) -> Result<Value> {
    let mut documents = documents(what, bytes)?;
    match (documents.pop(), documents.len()) {
        (Some(value), 0) => Ok(value),
        (None, _) => Err(Error::invalid(what, "is empty; one JSON or YAML document is expected")),
        (_, more) => {
            Err(Error::invalid(what, format!("has {} documents; exactly one is expected", more + 1)))
        }
    }
}

/// JSON values in a row; none if it is something else.
fn json_stream(bytes: &[u8]) -> Result<Option<Vec<Value>>, JsonError> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    let mut documents = Vec::new();
    let mut from = 0;
    loop {
        match stream.next() {
            None => return Ok(Some(documents)),
            Some(Err(_)) => return Ok(None),
            Some(Ok(_)) if documents.len() == MAX_DOCUMENTS => {
                return Err(JsonError::Syntax(format!("more than {MAX_DOCUMENTS} documents in one text")));
            }
            Some(Ok(_)) => {
                let to = stream.byte_offset();
                let value = json::parse(bytes.get(from..to).unwrap_or_default(), LIMITS)?;
                if !value.is_null() {
                    documents.push(value);
                }
                from = to;
            }
        }
    }
}

fn yaml(what: &str, bytes: &[u8]) -> Result<Vec<Value>> {
    // No snippets of the text in errors: it may hold a Secret.
    let options = serde_saphyr::options! {
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_BYTES),
            max_depth: MAX_DEPTH,
            max_documents: MAX_DOCUMENTS,
            max_nodes: MAX_YAML_NODES,
            max_events: 4 * MAX_YAML_NODES,
        },
    };
    serde_saphyr::from_slice_multiple_with_options(bytes, options)
        .map_err(|e| Error::invalid(what, format!("is not valid YAML: {e}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<Value>> {
        documents("text", text.as_bytes())
    }

    #[test]
    fn all_forms() {
        let both = Ok(vec![json!({"a": 1}), json!({"b": [true, null]})]);
        assert_eq!(read("{\"a\":1}{\"b\":[true,null]}"), both);
        assert_eq!(read("\n{\"a\":1}\n{\"b\":[true,null]}\n"), both);
        assert_eq!(read("{\"a\":1}\n---\n{\"b\":[true,null]}\n"), both);
        assert_eq!(read("---\na: 1\n---\nb:\n- true\n- ~\n---\n"), both);
        assert_eq!(read("{a: 1}"), Ok(vec![json!({"a": 1})]));
        assert_eq!(read("[]"), Ok(vec![json!([])]));
        assert_eq!(read("- a: 1\n"), Ok(vec![json!([{"a": 1}])]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read(" \n---\n# nothing\n"), Ok(vec![]));
        assert_eq!(read("1: a\n"), Ok(vec![json!({"1": "a"})]));
    }

    #[test]
    fn what_is_malformed_is_an_error_wherever_it_stands() {
        for text in [
            "{\"a\":1}{\"b\":",
            "{\"a\":1} x",
            "a: 1\n---\nb: [\n",
            "a: 1\na: 2\n",
            "{\"a\":1,\"a\":2}",
            "{\"b\":1}{\"a\":1,\"a\":2}",
            "a: &x [*x]\n",
            "a: .nan\n",
            "\u{0}",
        ] {
            assert!(read(text).is_err(), "{text:?} was taken: {:?}", read(text));
        }
        assert!(document("text", b"{\"a\":1}{\"b\":1}").is_err());
        assert!(document("text", b"").is_err());
    }

    #[test]
    fn depth_and_aliases_are_bounded() {
        for open in ["[", "{\"a\":", "- ", "a:\n "] {
            assert!(read(&open.repeat(10_000)).is_err());
        }
        let mut bomb = String::from("a0: &a0 [x]\n");
        for i in 1..30 {
            bomb += &format!("a{i}: &a{i} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = i - 1);
        }
        assert!(read(&bomb).is_err());
    }

    #[test]
    fn errors_do_not_quote_the_text() {
        let e = read("kind: Secret\nstringData: {password: hunter2\n").map(|_| ()).unwrap_err();
        assert!(!e.to_string().contains("hunter2"), "{e}");
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"0-9a-z\\\\ \n&*!|>'#-]{0,60}") {
            let _ = read(&text);
        }
    }
}
