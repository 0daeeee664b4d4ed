//! CustomResourceDefinitions, and the kinds they define.

use horchestra_controller::kinds::Kind;
use horchestra_controller::rest::{Change, FieldValidation, ListOptions, Subresource, Target, WriteOptions};
use serde_json::{Value, json};

use super::support::{Server, by, deleting, eventually};

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "mode": {"type": "string", "default": "fast", "enum": ["fast", "slow"]},
                        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    }},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                 }}}},
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                 "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            ],
        },
    })
}

pub(crate) fn thing(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let server = Server::start().await;
    let created = server.create(definition()).await.unwrap();
    let status = &created.value()["status"];
    let condition =
        |name: &str| status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == name).cloned();
    assert_eq!(condition("NamesAccepted").unwrap()["status"], "True");
    assert_eq!(condition("Established").unwrap()["status"], "True");
    assert_eq!(status["storedVersions"], json!(["v1"]));
    assert_eq!(status["acceptedNames"]["listKind"], "ThingList");
    assert_eq!(created.value()["spec"]["names"]["singular"], "thing");
    let object = server.create(thing("a", json!({"size": 1}))).await.unwrap();
    assert_eq!(object.value()["spec"], json!({"size": 1, "mode": "fast"}));
    assert_eq!(object.value()["metadata"]["generation"], 1);
}

#[tokio::test]
async fn instances_follow_the_schema() {
    let server = Server::start().await;
    server.create(definition()).await.unwrap();
    let error = server.create(thing("a", json!({"size": 0, "mode": "x", "list": "y"}))).await.unwrap_err();
    let status = error.status();
    assert_eq!(status["reason"], "Invalid");
    let mut fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    fields.dedup();
    assert_eq!(fields, ["spec.list", "spec.mode", "spec.size"]);
    let error = server.create(thing("a", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("spec.size: Required value"), "{error}");
    let error = server.create(thing("a", json!({"size": 1, "list": [{"b": 1}]}))).await.unwrap_err();
    assert!(error.to_string().contains("unknown field \"spec.list[0].b\""), "{error}");
    let (api, endpoint) = (server.api(), server.endpoint("example.com/v1", "Thing"));
    let ignore = WriteOptions { field_validation: FieldValidation::Ignore, ..by("t") };
    let body = thing("a", json!({"size": 1, "list": [{"b": 1, "a": "x"}], "extra": {}}));
    let pruned = api.create(&endpoint, "default", body, &ignore).await.unwrap().object;
    assert_eq!(pruned.value()["spec"], json!({"size": 1, "mode": "fast", "list": [{"a": "x"}]}));
    let target =
        Target { endpoint: &endpoint, namespace: "default", name: "a", subresource: Subresource::None };
    let strategic = api.change(target, Change::StrategicPatch(json!({"spec": {"size": 2}})), &by("t")).await;
    assert_eq!(strategic.unwrap_err().code(), 415);
    let replace =
        api.update(&endpoint, "default", "a", thing("a", json!({"size": 2})), &by("t")).await.unwrap_err();
    assert!(replace.to_string().contains("metadata.resourceVersion: Invalid value"), "{replace}");
}

#[tokio::test]
async fn status_is_apart_and_does_not_count() {
    let server = Server::start().await;
    server.create(definition()).await.unwrap();
    let (api, endpoint) = (server.api(), server.endpoint("example.com/v1", "Thing"));
    let mut with_status = thing("a", json!({"size": 1}));
    with_status["status"] = json!({"ready": true});
    let created = server.create(with_status).await.unwrap();
    assert_eq!(created.value().get("status"), None);
    let mut next = created.value().clone();
    next["status"] = json!({"ready": true});
    next["spec"]["size"] = json!(9);
    let written = api.update_status(&endpoint, "default", "a", next, &by("t")).await.unwrap().object;
    assert_eq!(written.value()["status"], json!({"ready": true}));
    assert_eq!(written.value()["spec"]["size"], 1);
    assert_eq!(written.value()["metadata"]["generation"], 1);
    let mut wrong = written.value().clone();
    wrong["status"]["ready"] = json!("yes");
    assert_eq!(api.update_status(&endpoint, "default", "a", wrong, &by("t")).await.unwrap_err().code(), 422);
}

#[tokio::test]
async fn versions_differ_in_name_only() {
    let server = Server::start().await;
    server.create(definition()).await.unwrap();
    let (api, old) = (server.api(), server.endpoint("example.com/v1beta1", "Thing"));
    let mut body = thing("a", json!({"size": 1}));
    body["apiVersion"] = json!("example.com/v1beta1");
    let written = api.create(&old, "default", body, &by("t")).await.unwrap();
    assert_eq!(written.warnings, ["example.com/v1beta1 Thing is deprecated"]);
    assert_eq!(written.object.value()["apiVersion"], "example.com/v1", "stored in the storage version");
    let mut bytes = Vec::new();
    written.object.write(old.api_version(), "Thing", &mut bytes);
    let served: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(served["apiVersion"], "example.com/v1beta1");
    assert!(api.kind("example.com/v2", "Thing").is_err());
}

#[tokio::test]
async fn bad_definitions_name_their_fields() {
    let server = Server::start().await;
    let change = |path: &str, value: Value| {
        let mut definition = definition();
        *definition.pointer_mut(path).unwrap() = value;
        definition
    };
    for (definition, field) in [
        (change("/metadata/name", json!("other.example.com")), "metadata.name"),
        (change("/spec/scope", json!("Galaxy")), "spec.scope"),
        (change("/spec/versions/0/storage", json!(false)), "spec.versions"),
        (change("/spec/versions/1/name", json!("v1")), "spec.versions"),
        (change("/spec/versions/0/schema", json!({})), "spec.versions[0].schema.openAPIV3Schema"),
        (
            change(
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
                json!({"properties": {"a": {}}}),
            ),
            "spec.versions[0].schema.openAPIV3Schema.properties[spec]",
        ),
    ] {
        let error = server.create(definition).await.unwrap_err();
        assert_eq!(error.code(), 422, "{error}");
        let status = error.status();
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!(causes.iter().any(|c| c["field"].as_str().unwrap().starts_with(field)), "{field}: {status}");
    }
    assert!(server.api().kind("example.com/v1", "Thing").is_err());
}

#[tokio::test]
async fn names_are_taken_once() {
    let server = Server::start().await;
    server.create(definition()).await.unwrap();
    let mut other = definition();
    other["metadata"]["name"] = json!("stuffs.example.com");
    other["spec"]["names"] = json!({"plural": "stuffs", "kind": "Stuff", "shortNames": ["th"]});
    let refused = server.create(other).await.unwrap();
    let conditions = refused.value()["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["type"], "NamesAccepted");
    assert_eq!(conditions[0]["status"], "False");
    assert!(server.api().kind("example.com/v1", "Stuff").is_err());
    // When the name becomes free, the other is served.
    let (api, endpoint) =
        (server.api(), server.endpoint("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    api.delete(&endpoint, "", "things.example.com", &deleting()).await.unwrap();
    eventually("the other definition is served", || async { api.kind("example.com/v1", "Stuff").ok() }).await;
}

#[tokio::test]
async fn changed_schemas_count_at_once() {
    let server = Server::start().await;
    server.create(definition()).await.unwrap();
    let (api, endpoint) =
        (server.api(), server.endpoint("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    let mut next = definition();
    next["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["new"] =
        json!({"type": "string"});
    api.apply(&endpoint, "", "things.example.com", next.clone(), &WriteOptions { force: true, ..by("x") })
        .await
        .unwrap();
    let object = server.create(thing("a", json!({"size": 1, "new": "x"}))).await.unwrap();
    assert_eq!(object.value()["spec"]["new"], "x");
    next["spec"]["scope"] = json!("Cluster");
    let error = api
        .apply(&endpoint, "", "things.example.com", next, &WriteOptions { force: true, ..by("x") })
        .await
        .unwrap_err();
    assert!(error.to_string().contains("spec.scope"), "{error}");
}

#[tokio::test]
async fn deleting_a_definition_deletes_its_instances() {
    let server = Server::start().await;
    let (api, endpoint) =
        (server.api(), server.endpoint("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    let created = server.create(definition()).await.unwrap();
    assert_eq!(
        created.value()["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    server.create(thing("plain", json!({"size": 1}))).await.unwrap();
    let mut held = thing("held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    server.create(held).await.unwrap();
    let things = server.endpoint("example.com/v1", "Thing");
    api.delete(&endpoint, "", "things.example.com", &deleting()).await.unwrap();
    let error = api
        .create(
            &server.endpoint("example.com/v1", "Thing"),
            "default",
            thing("late", json!({"size": 1})),
            &by("t"),
        )
        .await;
    assert_eq!(error.unwrap_err().code(), 405);
    eventually("the plain one goes", || async {
        let left = api.list(&things, "", &ListOptions::default()).await.unwrap().objects().unwrap();
        (left.len() == 1 && left[0].name() == "held").then_some(())
    })
    .await;
    let waiting = api.get(&endpoint, "", "things.example.com").await.unwrap();
    let terminating = waiting.value()["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c["type"] == "Terminating");
    assert!(terminating);
    let target =
        Target { endpoint: &things, namespace: "default", name: "held", subresource: Subresource::None };
    api.change(target, Change::MergePatch(json!({"metadata": {"finalizers": null}})), &by("t"))
        .await
        .unwrap();
    eventually("the definition goes", || async {
        api.get(&endpoint, "", "things.example.com").await.is_err().then_some(())
    })
    .await;
    eventually("the kind is gone", || async { api.kind("example.com/v1", "Thing").is_err().then_some(()) })
        .await;
    // And it can come back.
    server.create(definition()).await.unwrap();
    server.create(thing("again", json!({"size": 1}))).await.unwrap();
}

#[tokio::test]
async fn an_embedder_brings_its_own_kinds() {
    let kind = Kind::from_definition(&definition(), None).unwrap();
    let server = Server::start_with(|options| options.kinds.push(kind)).await;
    let object = server.create(thing("a", json!({"size": 2}))).await.unwrap();
    assert_eq!(object.value()["spec"]["mode"], "fast");
    let refused = server.create(definition()).await.unwrap();
    assert_eq!(refused.value()["status"]["conditions"][0]["status"], "False", "its names are taken");
    let mut broken = definition();
    broken["spec"]["group"] = json!("");
    assert!(!Kind::from_definition(&broken, None).unwrap_err().is_empty());
}

#[tokio::test]
async fn a_restarted_server_knows_its_definitions() {
    let store = std::sync::Arc::new(horchestra_controller::store::MemoryStore::default());
    let kept = store.clone();
    let server = Server::start_with(|options| options.store = kept).await;
    server.create(definition()).await.unwrap();
    server.create(thing("a", json!({"size": 1}))).await.unwrap();
    server.controller.shutdown().await;
    let server = Server::start_with(|options| options.store = store).await;
    let endpoint = server.endpoint("example.com/v1", "Thing");
    assert_eq!(server.api().get(&endpoint, "default", "a").await.unwrap().value()["spec"]["size"], 1);
}
