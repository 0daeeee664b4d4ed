//! Parts of an object, read without the rest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use horchestra_core::Object;
use serde_json::json;

#[test]
fn parts_are_what_the_tree_has() {
    let object = Object::from_value(&json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a", "annotations": {"example.com/mode": "fast", "other": "x"},
            "finalizers": ["example.com/one", "example.com/two"]},
        "status": {"phase": "Good", "list": [1]}}))
    .unwrap();
    assert_eq!(object.annotation("example.com/mode").as_deref(), Some("fast"));
    assert_eq!(object.annotation("example.com/other"), None);
    assert_eq!(object.finalizers(), ["example.com/one", "example.com/two"]);
    assert_eq!(serde_json::Value::Object(object.status()), json!({"phase": "Good", "list": [1]}));
}

#[test]
fn what_is_not_there_is_empty_also_where_its_word_is() {
    let object = Object::from_value(&json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "finalizers", "annotations": null}, "status": null, "x": "example.com/mode"}))
    .unwrap();
    assert_eq!(object.annotation("example.com/mode"), None);
    assert!(object.finalizers().is_empty() && object.status().is_empty());
}

#[test]
fn an_escaped_slash_is_a_slash() {
    let json = br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"example.com\/mode":"fast"}}}"#;
    assert_eq!(Object::from_json(json).unwrap().annotation("example.com/mode").as_deref(), Some("fast"));
}
