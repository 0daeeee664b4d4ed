//! Reads as questions to a host, and answers as JSON: both directions of what a flight asks.
//!
//! Yoke's host knows one question that reads (`k8s_lookup`, one object by name) and one about kinds
//! (`k8s_rest_mapping`). Our other reads are written as lookups of kinds that no server has, so
//! that a module needs no import that Yoke lacks; there they fail with "no matches for kind".
//!
//! | read | question |
//! |---|---|
//! | one object | `k8s_lookup` of its kind; objects of the cluster with an empty namespace |
//! | a list | `k8s_lookup` of the kind with `List` behind it, the name is the selector, the namespace `*` means all |
//! | older than | `k8s_lookup` of `horchestra.dev/v1` `Elapsed`, the name is `CREATED/SECONDS/REFERENCE` |
//! | mapping | `k8s_rest_mapping` |

use std::time::Duration;

use horchestra_core::{Answer, Error, GroupKind, GroupVersionKind, Kind, Object, ObjectRef, Read, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{Question, Refusal, State};

/// The `apiVersion` of the lookups that stand for other reads.
pub const OWN_API_VERSION: &str = "horchestra.dev/v1";
/// The kind of the lookup that asks whether something has existed for a while.
pub const ELAPSED: &str = "Elapsed";
/// What the kind of a list ends in.
const LIST: &str = "List";
/// The namespace of a list over all of them.
const ALL_NAMESPACES: &str = "*";
/// The text of [`State::FeatureNotGranted`], fixed by the contract.
pub const NOT_GRANTED: &str = "access to the cluster has not been granted for this flight invocation";
/// How the text begins for a kind that is not served.
const NO_MATCH: &str = "no matches for kind";

/// How a kind is served, as Yoke's hosts write it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RestMapping {
    group: String,
    version: String,
    kind: String,
    resource: String,
    namespaced: bool,
}

/// A read as the question that a flight puts to its host.
pub fn read_to_question(read: &Read) -> Result<Question> {
    let lookup = |kind: String, api_version: String, namespace: &str, name: &str| Question::Lookup {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        kind,
        api_version,
    };
    Ok(match read {
        Read::Get { kind, namespace, name } => {
            lookup(kind.kind.to_string(), kind.api_version(), namespace, name)
        }
        Read::List { kind, namespace, selector } => {
            let namespace = namespace.as_deref().unwrap_or(ALL_NAMESPACES);
            lookup(format!("{}{LIST}", kind.kind), kind.api_version(), namespace, selector)
        }
        Read::OlderThan { object, created, age } => {
            let name = format!("{created}/{}.{:09}/{object}", age.as_secs(), age.subsec_nanos());
            lookup(ELAPSED.into(), OWN_API_VERSION.into(), &object.namespace, &name)
        }
        Read::Mapping { group, version, kind } => Question::RestMapping {
            group_or_api_version: if version.is_empty() {
                group.to_string()
            } else {
                format!("{group}/{version}")
            },
            kind: kind.to_string(),
        },
        other => return Err(Error::terminal(format!("{other} cannot be asked for in a flight"))),
    })
}

/// A flight's question as a read.
///
/// `namespace` is the release's: an empty one in the question means it, unless the kind is one of
/// the cluster. `namespaced` says so; ask it about kinds, and answer true for unknown ones.
pub fn question_to_read(
    question: &Question,
    namespace: &str,
    namespaced: impl FnOnce(&GroupVersionKind) -> bool,
) -> Result<Read> {
    let (name, asked, kind, api_version) = match question {
        Question::Lookup { name, namespace, kind, api_version } => (name, namespace, kind, api_version),
        Question::RestMapping { group_or_api_version, kind } => {
            let (group, version) = group_or_api_version.split_once('/').unwrap_or((group_or_api_version, ""));
            return Ok(Read::Mapping {
                group: group.into(),
                version: version.into(),
                kind: kind.as_str().into(),
            });
        }
    };
    if api_version.is_empty() || kind.is_empty() || api_version.matches('/').count() > 1 {
        return Err(Error::invalid(
            "lookup",
            format!(
                "apiVersion {api_version:?} with kind {kind:?} names no kind; write it as in a manifest (v1, apps/v1)"
            ),
        ));
    }
    if api_version == OWN_API_VERSION && kind == ELAPSED {
        return elapsed(name);
    }
    if let Some(item) = kind.strip_suffix(LIST).filter(|item| !item.is_empty()) {
        let kind = GroupVersionKind::from_manifest(api_version, item);
        let namespace = match asked.as_str() {
            ALL_NAMESPACES => None,
            _ if !namespaced(&kind) => None,
            "" => Some(namespace.into()),
            other => Some(other.into()),
        };
        return Ok(Read::List { kind, namespace, selector: name.as_str().into() });
    }
    if name.is_empty() {
        return Err(Error::invalid(
            "lookup",
            format!("of {kind} in {api_version} has no name; to read all, look up {kind}{LIST}"),
        ));
    }
    let kind = GroupVersionKind::from_manifest(api_version, kind);
    let namespace = match asked.as_str() {
        _ if !namespaced(&kind) => "",
        "" => namespace,
        other => other,
    };
    Ok(Read::Get { kind, namespace: namespace.into(), name: name.as_str().into() })
}

fn elapsed(name: &str) -> Result<Read> {
    let wrong = || Error::invalid("lookup", format!("{name:?} is not CREATED/SECONDS.NANOSECONDS/REFERENCE"));
    let (created, rest) = name.split_once('/').ok_or_else(wrong)?;
    let (age, object) = rest.split_once('/').ok_or_else(wrong)?;
    let (seconds, nanos) = age.split_once('.').ok_or_else(wrong)?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if nanos.len() != 9 || !digits(nanos) || !digits(seconds) || created.is_empty() {
        return Err(wrong());
    }
    let age = Duration::new(seconds.parse().map_err(|_| wrong())?, nanos.parse().map_err(|_| wrong())?);
    let object: ObjectRef = object.parse()?;
    Ok(Read::OlderThan { object, created: created.into(), age })
}

/// The answer to a read as a host gives it to a flight.
pub fn answer_to_json(read: &Read, answer: &Answer) -> Result<Vec<u8>, Refusal> {
    match (read, answer) {
        (Read::Get { kind, name, .. }, Answer::Object(None)) => {
            Err(Refusal::State(State::NotFound, format!("{} {:?} not found", kind.group_kind(), &**name)))
        }
        (_, Answer::Object(Some(object))) => Ok(object.json().to_vec()),
        (Read::List { kind, .. }, Answer::Objects(objects)) => Ok(list(kind, objects)),
        (_, Answer::Flag(flag)) => Ok(flag.to_string().into_bytes()),
        (_, Answer::Kind(Some(kind))) => serde_json::to_vec(&RestMapping {
            group: kind.gvk.group.to_string(),
            version: kind.gvk.version.to_string(),
            kind: kind.gvk.kind.to_string(),
            resource: kind.plural.to_string(),
            namespaced: kind.namespaced,
        })
        .map_err(|e| Refusal::State(State::Error, e.to_string())),
        (Read::Mapping { group, version, kind }, Answer::Kind(None)) => {
            // The text of the mapper of Kubernetes' client library.
            let text = match &**version {
                "" => format!("{NO_MATCH} {kind:?} in group {group:?}", kind = &**kind, group = &**group),
                _ => {
                    let gvk = GroupVersionKind::new(group.clone(), version.clone(), kind.clone());
                    format!("{NO_MATCH} {:?} in version {:?}", &*gvk.kind, gvk.api_version())
                }
            };
            Err(Refusal::State(State::Error, text))
        }
        (read, _) => Err(Refusal::State(State::Error, format!("the answer to {read} is of another kind"))),
    }
}

/// A list as an API server writes it. The objects go in as they are, without a detour over trees.
fn list(kind: &GroupVersionKind, objects: &[Object]) -> Vec<u8> {
    let head = serde_json::json!({"apiVersion": kind.api_version(), "kind": format!("{}{LIST}", kind.kind), "metadata": {}});
    let mut json = head.to_string().into_bytes();
    json.pop();
    json.extend_from_slice(b",\"items\":[");
    for (at, object) in objects.iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(object.json());
    }
    json.extend_from_slice(b"]}");
    json
}

/// What a host tells a flight when a read failed.
pub fn error_to_refusal(error: &Error) -> Refusal {
    match error {
        Error::Pending(_) => Refusal::Pending,
        other => Refusal::State(State::Error, other.to_string()),
    }
}

/// A host's answer as a flight reads it.
pub fn json_to_answer(read: &Read, answer: Result<Vec<u8>, Refusal>) -> Result<Answer> {
    let json = match answer {
        Ok(json) => json,
        Err(refusal) => return refused(read, refusal),
    };
    let wrong =
        |e: serde_json::Error| Error::terminal(format!("the host's answer to {read} is malformed: {e}"));
    Ok(match read {
        Read::Get { .. } => Answer::Object(Some(Object::from_json(&json)?)),
        Read::List { kind, .. } => {
            #[derive(Deserialize)]
            struct List {
                #[serde(default)]
                items: Option<Vec<Value>>,
            }
            let list: List = serde_json::from_slice(&json).map_err(wrong)?;
            let items = list.items.unwrap_or_default().into_iter().map(|mut item| {
                // API servers leave these out of the items of a typed list.
                if let Some(map) = item.as_object_mut() {
                    map.entry("apiVersion").or_insert_with(|| kind.api_version().into());
                    map.entry("kind").or_insert_with(|| (*kind.kind).into());
                }
                Object::from_value(&item)
            });
            Answer::Objects(items.collect::<Result<_>>()?)
        }
        Read::OlderThan { .. } => Answer::Flag(serde_json::from_slice(&json).map_err(wrong)?),
        Read::Mapping { .. } => {
            let m: RestMapping = serde_json::from_slice(&json).map_err(wrong)?;
            Answer::Kind(Some(Kind {
                gvk: GroupVersionKind::new(m.group, m.version, m.kind),
                plural: m.resource.into(),
                namespaced: m.namespaced,
            }))
        }
        other => return Err(Error::terminal(format!("{other} cannot be asked for in a flight"))),
    })
}

/// What it means for a flight that the host has no answer.
fn refused(read: &Read, refusal: Refusal) -> Result<Answer> {
    match (read, refusal) {
        (Read::Get { .. }, Refusal::State(State::NotFound, _)) => Ok(Answer::Object(None)),
        (Read::Mapping { .. }, Refusal::State(State::Error | State::NotFound, text))
            if text.contains(NO_MATCH) =>
        {
            Ok(Answer::Kind(None))
        }
        (_, Refusal::Pending) => Err(Error::Pending(GroupKind::new("", what(read)).to_string())),
        (_, Refusal::State(State::FeatureNotGranted, _)) => Err(Error::terminal(NOT_GRANTED)),
        (_, Refusal::State(State::Forbidden, text)) => Err(Error::terminal(text)),
        (_, Refusal::State(_, text)) => Err(Error::transient(text)),
    }
    .map_err(|e| e.context(format!("failed to lookup {}", what(read))))
}

/// A read in the words of the contract: `secret one`.
fn what(read: &Read) -> String {
    match read {
        Read::Get { kind, name, .. } => format!("{} {name}", kind.kind.to_lowercase()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Object {
        Object::from_value(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"}})).unwrap()
    }

    fn deployment() -> GroupVersionKind {
        GroupVersionKind::new("apps", "v1", "Deployment")
    }

    prop_compose! {
        fn gvk()(group in "([a-z]{1,5}(\\.[a-z]{1,3})?)?", version in "v[1-9](beta1)?", kind in "[A-Z][a-z]{1,8}") -> GroupVersionKind {
            GroupVersionKind::new(group, version, kind)
        }
    }

    fn read() -> impl Strategy<Value = Read> {
        let name = "[a-z0-9][a-z0-9.-]{0,8}";
        prop_oneof![
            (gvk(), "[a-z]{1,5}", name)
                .prop_filter("a list", |(k, _, _)| !k.kind.ends_with(LIST))
                .prop_map(|(kind, ns, name)| Read::Get { kind, namespace: ns.into(), name: name.into() }),
            (gvk(), proptest::option::of("[a-z]{1,5}"), "([a-z]{1,3}(=|!=)[a-z]{1,3})?").prop_map(
                |(kind, ns, selector)| Read::List {
                    kind,
                    namespace: ns.map(Into::into),
                    selector: selector.into()
                }
            ),
            (gvk(), "[a-z]{0,5}", name, any::<u32>(), 0..1_000_000_000u32).prop_map(
                |(kind, ns, name, s, n)| Read::OlderThan {
                    object: ObjectRef::new(kind.group_kind(), ns, name),
                    created: "2026-01-02T03:04:05Z".into(),
                    age: Duration::new(s.into(), n)
                }
            ),
            (gvk(), any::<bool>()).prop_map(|(k, any)| Read::Mapping {
                group: k.group,
                version: if any { "".into() } else { k.version },
                kind: k.kind
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_read_survives_being_asked(read in read()) {
            let question = read_to_question(&read).unwrap();
            prop_assert_eq!(question_to_read(&question, "release", |_| true).unwrap(), read);
        }

        #[test]
        fn no_question_panics(name in ".{0,30}", namespace in ".{0,5}", kind in ".{0,12}", api in ".{0,12}") {
            let question = Question::Lookup { name: name.clone(), namespace, kind, api_version: api };
            let _ = question_to_read(&question, "release", |_| true);
            let _ = elapsed(&name);
        }
    }

    #[test]
    fn an_empty_namespace_is_the_release_or_none() {
        let ask = |kind: &str, namespace: &str, namespaced: bool| {
            let question = Question::Lookup {
                name: "a".into(),
                namespace: namespace.into(),
                kind: kind.into(),
                api_version: "v1".into(),
            };
            question_to_read(&question, "release", |_| namespaced).unwrap()
        };
        let get = |namespace: &str| Read::Get {
            kind: GroupVersionKind::new("", "v1", "Secret"),
            namespace: namespace.into(),
            name: "a".into(),
        };
        assert_eq!(ask("Secret", "", true), get("release"));
        assert_eq!(ask("Secret", "other", true), get("other"));
        assert_eq!(ask("Secret", "other", false), get(""));
        let list = |namespace: Option<&str>| Read::List {
            kind: GroupVersionKind::new("", "v1", "Secret"),
            namespace: namespace.map(Into::into),
            selector: "a".into(),
        };
        assert_eq!(ask("SecretList", "", true), list(Some("release")));
        assert_eq!(ask("SecretList", "*", true), list(None));
        assert_eq!(ask("SecretList", "", false), list(None));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for (kind, api, name) in [
            ("Secret", "", "a"),
            ("", "v1", "a"),
            ("Secret", "a/b/c", "a"),
            ("Secret", "v1", ""),
            (ELAPSED, OWN_API_VERSION, "x"),
        ] {
            let question = Question::Lookup {
                name: name.into(),
                namespace: String::new(),
                kind: kind.into(),
                api_version: api.into(),
            };
            assert!(question_to_read(&question, "release", |_| true).is_err(), "{question:?}");
        }
    }

    #[test]
    fn answers_there_and_back() {
        let get = Read::Get { kind: deployment(), namespace: "n".into(), name: "a".into() };
        let list = Read::List { kind: deployment(), namespace: None, selector: "".into() };
        let older = Read::OlderThan {
            object: object("a").reference(),
            created: "t".into(),
            age: Duration::from_secs(1),
        };
        let mapping = Read::Mapping { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() };
        let kind = Kind { gvk: deployment(), plural: "deployments".into(), namespaced: true };
        for (read, answer) in [
            (&get, Answer::Object(None)),
            (&get, Answer::Object(Some(object("a")))),
            (&list, Answer::Objects(vec![])),
            (&list, Answer::Objects(vec![object("a"), object("b")])),
            (&older, Answer::Flag(true)),
            (&older, Answer::Flag(false)),
            (&mapping, Answer::Kind(None)),
            (&mapping, Answer::Kind(Some(kind))),
        ] {
            let back = json_to_answer(read, answer_to_json(read, &answer)).unwrap();
            match (&answer, &back) {
                // The same objects, if not the same bytes.
                (Answer::Objects(a), Answer::Objects(b)) => {
                    let values = |list: &[Object]| list.iter().map(Object::to_value).collect::<Vec<_>>();
                    assert_eq!(values(a), values(b));
                }
                _ => assert_eq!(back, answer),
            }
        }
    }

    #[test]
    fn yokes_own_words() {
        let mapping = Read::Mapping { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() };
        let kind = Kind { gvk: deployment(), plural: "deployments".into(), namespaced: true };
        let json = answer_to_json(&mapping, &Answer::Kind(Some(kind))).unwrap();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true}"#
        );
        let get = Read::Get {
            kind: GroupVersionKind::new("", "v1", "Secret"),
            namespace: "n".into(),
            name: "one".into(),
        };
        let text =
            |state, text: &str| json_to_answer(&get, Err(Refusal::State(state, text.into()))).unwrap_err();
        let forbidden = "forbidden: cannot access resource outside of target release ownership";
        assert_eq!(
            text(State::Forbidden, forbidden),
            Error::terminal(format!("failed to lookup secret one: {forbidden}"))
        );
        assert_eq!(
            text(State::FeatureNotGranted, "feature not granted"),
            Error::terminal(format!("failed to lookup secret one: {NOT_GRANTED}"))
        );
        assert_eq!(text(State::Error, "no route"), Error::transient("failed to lookup secret one: no route"));
        assert_eq!(text(State::Unauthenticated, "who"), Error::transient("failed to lookup secret one: who"));
        // A server's own list leaves the types of its items out.
        let list = Read::List { kind: deployment(), namespace: None, selector: "".into() };
        let answer =
            json_to_answer(&list, Ok(br#"{"items":[{"metadata":{"name":"a","namespace":"n"}}]}"#.to_vec()))
                .unwrap();
        assert!(matches!(answer, Answer::Objects(o) if o[0].to_value() == object("a").to_value()));
    }
}
