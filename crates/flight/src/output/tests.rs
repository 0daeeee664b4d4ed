//! What is printed arrives as it was meant.

use horchestra_core::{Condition, DesiredState, Error, Extent, Object};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{ANNOTATION_ANSWER, EMPTY, encode, parse};
use crate::contract::{EXIT_STATUS_ONLY, Output};

fn instance() -> Object {
    Object::from_value(&json!({"apiVersion": "examples.com/v1", "kind": "Pipeline",
        "metadata": {"name": "p", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"message": "old", "conditions": [{"type": "Old", "status": "True"}]}}))
    .unwrap()
}

fn output(stdout: impl AsRef<[u8]>, exit_code: i32) -> Output {
    Output {
        stdout: stdout.as_ref().to_vec(),
        stderr: b"step one\nit broke\n".to_vec(),
        exit_code,
        ..Output::default()
    }
}

fn read(stdout: &str) -> Result<DesiredState, Error> {
    parse(&output(stdout, 0), Some(&instance()))
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn names(desired: &DesiredState) -> Vec<Vec<&str>> {
    desired.stages().iter().map(|stage| stage.iter().map(|m| m.name()).collect()).collect()
}

const OWN: &str = r#"{"apiVersion":"examples.com/v1","kind":"Pipeline","metadata":{"name":"p","namespace":"n"},"status":{"message":"m"}}"#;

#[test]
fn documents_lists_and_stages() {
    let (a, b) = (map("a"), map("b"));
    for text in [format!("{a}{b}"), format!("{a}\n---\n{b}"), format!("[{a},{b}]"), format!("[[{a},{b}]]")] {
        assert_eq!(names(&read(&text).unwrap()), [["a", "b"]], "{text}");
    }
    assert_eq!(names(&read(&format!("[[{a}],[],[{b}]]")).unwrap()), [["a"], ["b"]]);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
    assert_eq!(names(&read(yaml).unwrap()), [["a", "b"]]);
    assert_eq!(
        names(&read("- - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n").unwrap()),
        [["a"]]
    );
}

#[test]
fn nothing_must_be_said() {
    for text in ["", "  \n", "---\n", "null"] {
        assert_eq!(read(text).unwrap_err(), Error::invalid("output", EMPTY), "{text:?}");
    }
    for text in ["[]", "[[]]", "[[],[]]"] {
        assert_eq!(read(text).unwrap(), DesiredState::nothing(), "{text:?}");
    }
    let said = read(&format!("[[],[{OWN}]]")).unwrap();
    assert_eq!(said, DesiredState::nothing().status(json!({"message": "m"})));
}

#[test]
fn the_resource_itself_is_its_status() {
    for text in [OWN.to_owned(), format!("[{OWN}]"), format!("[[{OWN}]]")] {
        let desired = read(&text).unwrap();
        assert_eq!(desired.extent(), Extent::Unsaid, "{text}");
        assert_eq!(desired.own_status().unwrap()["message"], "m");
    }
    let desired = read(&format!("[{},{OWN}]", map("a"))).unwrap();
    assert_eq!((desired.extent(), names(&desired)), (Extent::Exactly, vec![vec!["a"]]));
    // In the release's namespace if it names none; of the same kind in another version.
    let other = OWN.replace(r#","namespace":"n""#, "").replace("/v1", "/v2");
    assert_eq!(read(&other).unwrap().extent(), Extent::Unsaid);
    // Others are resources like any: another namespace, another group, another name.
    for (from, to) in [(r#""n""#, r#""other""#), ("examples.com", "example.org"), (r#""p""#, r#""q""#)] {
        assert_eq!(read(&OWN.replace(from, to)).unwrap().extent(), Extent::Exactly);
    }
    // Without an instance nothing is special.
    assert_eq!(parse(&output(OWN, 0), None).unwrap().extent(), Extent::Exactly);
    assert!(read(&format!("[{OWN},{OWN}]")).is_err());
    assert!(read(&OWN.replace(r#"{"message":"m"}"#, "7")).is_err());
}

#[test]
fn malformed_output_is_an_error_that_says_where() {
    let a = map("a");
    for (text, part) in [
        (format!("{a}\n---\n{{\"kind\": \n"), "neither JSON"),
        (format!("{a}\n---\nkind: [\n"), "output"),
        (format!("[{a},7]"), "output[1]"),
        (format!("[{a},[{a}]]"), "output[1]"),
        (format!("[[{a}],[[{a}]]]"), "stage 1"),
        (format!("{a}\n---\n[{a}]"), "output[1]"),
        (r#"[{"apiVersion":"v1","metadata":{"name":"a"}}]"#.into(), "kind"),
        (r#"[{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}]"#.into(), "metadata.name"),
        ("hello".into(), "output[0]"),
        (r#"{"apiVersion":"v1","kind":"ConfigMap","kind":"Secret","metadata":{"name":"a"}}"#.into(), "kind"),
    ] {
        let error = read(&text).map(|d| names(&d).concat().join(",")).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_failure_keeps_its_words_and_its_status() {
    let failed = parse(&output("", 1), Some(&instance()));
    assert_eq!(failed, Err(Error::Transient("step one\nit broke".into())));
    let silent = parse(&Output { exit_code: 3, ..Output::default() }, None).unwrap_err().to_string();
    assert!(silent.contains("exit code 3"), "{silent}");
    // Resources of a failed run do not count, its status does.
    let desired = parse(&output(format!("[{},{OWN}]", map("a")), 1), Some(&instance())).unwrap();
    let expected = DesiredState::new().status(json!({"message": "m"})).condition(Condition::ready(
        false,
        "Error",
        "step one\nit broke",
    ));
    assert_eq!(desired, expected);
    assert_eq!(desired.extent(), Extent::Unsaid);
    // A truncated output hides no reason.
    assert_eq!(
        parse(&output("[{", 1), Some(&instance())),
        Err(Error::Transient("step one\nit broke".into()))
    );
    let long = Output { stderr: "ä".repeat(10_000).into_bytes(), exit_code: 1, ..Output::default() };
    assert!(parse(&long, None).unwrap_err().to_string().len() <= 4096);
}

#[test]
fn only_a_status_by_exit_code() {
    let desired = parse(&output(OWN, EXIT_STATUS_ONLY), Some(&instance())).unwrap();
    assert_eq!(desired, DesiredState::new().status(json!({"message": "m"})));
    assert!(parse(&output("[]", EXIT_STATUS_ONLY), Some(&instance())).is_err());
    assert!(parse(&output("", EXIT_STATUS_ONLY), Some(&instance())).is_err());
}

#[test]
fn hosts_that_know_no_notes_see_a_plain_status() {
    let waiting = DesiredState::new().waiting_for("Secret s");
    let (text, code) = encode(&waiting, &instance()).unwrap();
    let printed: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(code, EXIT_STATUS_ONLY);
    assert_eq!(printed[0]["status"]["message"], "old");
    assert_eq!(
        printed[0]["status"]["conditions"],
        json!([{"type": "Ready", "status": "False", "reason": "InProgress", "message": "waiting for: Secret s",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    );
    assert_eq!(parse(&output(&text, code), Some(&instance())).unwrap(), waiting);
    let plain = DesiredState::new().status(json!({"a": 1}));
    let (text, _) = encode(&plain, &instance()).unwrap();
    assert!(!String::from_utf8(text).unwrap().contains(ANNOTATION_ANSWER));
}

#[test]
fn the_resource_itself_cannot_be_wanted() {
    let own = serde_json::from_str(OWN).unwrap();
    let desired = DesiredState::new().with_value(own);
    assert!(matches!(encode(&desired, &instance()), Err(Error::Invalid { .. })));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3).prop_map(|m| json!(m)),
        ]
    })
}

fn condition(types: &'static str) -> impl Strategy<Value = Condition> {
    (types, any::<bool>(), ".{0,8}")
        .prop_map(|(type_, holds, message)| Condition::new(&type_, holds, "Because", message))
}

prop_compose! {
    fn desired()(
        nothing in any::<bool>(),
        sizes in prop::collection::vec(1..3usize, 0..4),
        data in value(),
        status in prop::option::of(prop::collection::btree_map("[a-z]{1,4}", value(), 0..3)),
        // Conditions in a status and conditions added to an answer have types of their own here: of two
        // of one type the added one counts, so the other does not arrive.
        own in prop::collection::vec(condition("(Ready|Own[a-c])"), 0..3),
        added in prop::collection::vec(condition("Added[a-c]"), 0..3),
        ready in prop::option::of(any::<bool>()),
        waiting in prop::collection::vec(".{0,8}", 0..3),
    ) -> Option<DesiredState> {
        let mut desired = if nothing && sizes.is_empty() { DesiredState::nothing() } else { DesiredState::new() };
        for (stage, size) in sizes.iter().enumerate() {
            desired = desired.then();
            for i in 0..*size {
                let mut object = map(&format!("o{stage}-{i}"));
                object["data"] = data.clone();
                desired = desired.with_value(object);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        let own: Vec<_> = own.into_iter().filter(|c| seen.insert(c.type_.clone())).collect();
        if let Some(status) = status {
            let mut status: Map<String, Value> = status.into_iter().collect();
            if !own.is_empty() {
                status.insert("conditions".into(), json!(own));
            }
            desired = desired.status(status);
        }
        for condition in added {
            desired = desired.condition(condition);
        }
        if let Some(holds) = ready.filter(|_| !seen.contains("Ready")) {
            desired = desired.condition(Condition::ready(holds, "Because", ""));
        }
        waiting.into_iter().fold(desired, DesiredState::waiting_for).checked().ok()
    }
}

proptest! {
    #[test]
    fn what_is_encoded_arrives(desired in desired()) {
        if let Some(desired) = desired {
            let (text, code) = encode(&desired, &instance()).unwrap();
            let back = parse(&output(&text, code), Some(&instance())).unwrap();
            prop_assert_eq!(&back, &desired, "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn no_output_panics(text in "[\\[\\]{}:,\"a-z0-9 \n-]{0,60}", code in 0..90) {
        let _ = parse(&output(text, code), Some(&instance()));
    }
}
