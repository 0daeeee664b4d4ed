//! A manager that applies an object without any of the fields it had applied lets go of them.

use horchestra_core::apply::{Manager, apply};
use serde_json::json;

#[test]
fn a_bare_apply_removes_what_was_applied_and_keeps_the_identity() {
    let manager = Manager {
        name: "m".into(),
        api_version: "v1".into(),
        subresource: None,
        time: "2026-01-01T00:00:00Z".into(),
    };
    let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    let mut full = bare.clone();
    full["metadata"]["finalizers"] = json!(["example.com/f"]);
    full["metadata"]["annotations"] = json!({"k": "v"});
    let mut live = bare.clone();
    live["metadata"]["uid"] = "u".into();
    live["metadata"]["generation"] = 1.into();
    let held = apply(Some(&live), &full, None, &manager, true).unwrap();
    assert_eq!(held["metadata"]["finalizers"], json!(["example.com/f"]));
    let released = apply(Some(&held), &bare, None, &manager, true).unwrap();
    assert_eq!(released["metadata"]["name"], "a", "{released}");
    assert_eq!(released["metadata"]["namespace"], "n");
    assert_eq!(released["metadata"]["uid"], "u");
    assert!(released["metadata"].get("finalizers").is_none_or(|f| f == &json!([])), "{released}");
    assert!(released["metadata"].get("annotations").is_none_or(|f| f == &json!({})), "{released}");
}
