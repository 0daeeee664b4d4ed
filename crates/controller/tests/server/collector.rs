//! Finalizers, owners, namespaces: what goes when, and what goes with it.

use horchestra_controller::ApiError;
use horchestra_controller::kinds::Propagation;
use horchestra_controller::rest::{Change, DeleteOptions, Deleted, ListOptions, Subresource, Target};
use serde_json::{Value, json};

use super::support::{Server, by, config_map, deleting, eventually};

fn owned(name: &str, owner: &horchestra_controller::Object, block: bool) -> Value {
    let mut object = config_map(name, json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner.value()["apiVersion"], "kind": owner.value()["kind"], "name": owner.name(),
        "uid": owner.uid(), "controller": true, "blockOwnerDeletion": block,
    }]);
    object
}

async fn gone(server: &Server, name: &str) {
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    eventually(&format!("{name} goes"), || async {
        matches!(api.get(&endpoint, "default", name).await, Err(ApiError::NotFound(_))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn preconditions_hold_or_nothing_is_deleted() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let object = server.create(config_map("a", json!({}))).await.unwrap();
    let wrong = DeleteOptions { uid: Some("x".to_owned()), ..deleting() };
    assert_eq!(api.delete(&endpoint, "default", "a", &wrong).await.unwrap_err().code(), 409);
    let wrong = DeleteOptions { resource_version: Some("1".to_owned()), ..deleting() };
    assert_eq!(api.delete(&endpoint, "default", "a", &wrong).await.unwrap_err().code(), 409);
    let right = DeleteOptions {
        uid: Some(object.uid().to_owned()),
        resource_version: Some(object.revision().to_string()),
        ..deleting()
    };
    assert!(matches!(api.delete(&endpoint, "default", "a", &right).await.unwrap(), Deleted::Gone(_)));
    assert_eq!(api.delete(&endpoint, "default", "a", &deleting()).await.unwrap_err().code(), 404);
}

#[tokio::test]
async fn finalizers_delay() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let mut object = config_map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    server.create(object).await.unwrap();
    let Deleted::Pending(pending) = api.delete(&endpoint, "default", "a", &deleting()).await.unwrap() else {
        panic!("it has a finalizer")
    };
    assert!(pending.value()["metadata"]["deletionTimestamp"].is_string());
    let again = api.delete(&endpoint, "default", "a", &deleting()).await.unwrap();
    assert_eq!(again.object().revision(), pending.revision(), "a second delete changes nothing");
    let target =
        Target { endpoint: &endpoint, namespace: "default", name: "a", subresource: Subresource::None };
    let more = json!({"metadata": {"finalizers": ["example.com/f", "example.com/g"]}});
    let error = api.change(target, Change::MergePatch(more), &by("t")).await.unwrap_err();
    assert!(error.to_string().contains("no new finalizers can be added"), "{error}");
    let none = json!({"metadata": {"finalizers": []}});
    api.change(target, Change::MergePatch(none), &by("t")).await.unwrap();
    assert_eq!(api.get(&endpoint, "default", "a").await.unwrap_err().code(), 404);
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let owner = server.create(config_map("owner", json!({}))).await.unwrap();
    let child = server.create(owned("child", &owner, false)).await.unwrap();
    server.create(owned("grandchild", &child, false)).await.unwrap();
    server.create(config_map("other", json!({}))).await.unwrap();
    api.delete(&endpoint, "default", "owner", &deleting()).await.unwrap();
    gone(&server, "child").await;
    gone(&server, "grandchild").await;
    api.get(&endpoint, "default", "other").await.unwrap();
}

#[tokio::test]
async fn one_of_two_owners_is_enough() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let one = server.create(config_map("one", json!({}))).await.unwrap();
    let two = server.create(config_map("two", json!({}))).await.unwrap();
    let mut child = owned("child", &one, false);
    let mut second = owned("x", &two, false)["metadata"]["ownerReferences"][0].clone();
    second["controller"] = json!(false);
    child["metadata"]["ownerReferences"].as_array_mut().unwrap().push(second);
    server.create(child).await.unwrap();
    api.delete(&endpoint, "default", "one", &deleting()).await.unwrap();
    eventually("the dead reference goes", || async {
        let child = api.get(&endpoint, "default", "child").await.unwrap();
        (child.value()["metadata"]["ownerReferences"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    api.delete(&endpoint, "default", "two", &deleting()).await.unwrap();
    gone(&server, "child").await;
}

#[tokio::test]
async fn an_owner_that_never_was_takes_its_dependents() {
    let server = Server::start().await;
    let owner = server.create(config_map("owner", json!({}))).await.unwrap();
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    api.delete(&endpoint, "default", "owner", &deleting()).await.unwrap();
    server.create(owned("late", &owner, false)).await.unwrap();
    gone(&server, "late").await;
}

#[tokio::test]
async fn foreground_waits_for_blocking_dependents() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let owner = server.create(config_map("owner", json!({}))).await.unwrap();
    let mut child = owned("child", &owner, true);
    child["metadata"]["finalizers"] = json!(["example.com/f"]);
    server.create(child).await.unwrap();
    let options = DeleteOptions { propagation: Some(Propagation::Foreground), ..deleting() };
    let deleted = api.delete(&endpoint, "default", "owner", &options).await.unwrap();
    assert_eq!(deleted.object().value()["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    eventually("the child is deleted", || async {
        let child = api.get(&endpoint, "default", "child").await.unwrap();
        child.value()["metadata"].get("deletionTimestamp").map(|_| ())
    })
    .await;
    api.get(&endpoint, "default", "owner").await.expect("the owner waits");
    let target =
        Target { endpoint: &endpoint, namespace: "default", name: "child", subresource: Subresource::None };
    api.change(target, Change::MergePatch(json!({"metadata": {"finalizers": null}})), &by("t"))
        .await
        .unwrap();
    gone(&server, "owner").await;
    gone(&server, "child").await;
}

#[tokio::test]
async fn orphans_stay() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let owner = server.create(config_map("owner", json!({}))).await.unwrap();
    server.create(owned("child", &owner, true)).await.unwrap();
    let options = DeleteOptions { propagation: Some(Propagation::Orphan), ..deleting() };
    api.delete(&endpoint, "default", "owner", &options).await.unwrap();
    gone(&server, "owner").await;
    let child = api.get(&endpoint, "default", "child").await.unwrap();
    assert_eq!(child.value()["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn a_namespace_takes_its_contents_with_it() {
    let server = Server::start().await;
    let (api, namespaces) = (server.api(), server.endpoint("v1", "Namespace"));
    let created = server
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}))
        .await
        .unwrap();
    assert_eq!(created.value()["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(created.value()["status"]["phase"], "Active");
    assert_eq!(created.value()["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    for name in ["plain", "held"] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["namespace"] = json!("n");
        if name == "held" {
            object["metadata"]["finalizers"] = json!(["example.com/f"]);
        }
        server.create(object).await.unwrap();
    }
    let deleted = api.delete(&namespaces, "", "n", &deleting()).await.unwrap();
    assert_eq!(deleted.object().value()["status"]["phase"], "Terminating");
    let mut late = config_map("late", json!({}));
    late["metadata"]["namespace"] = json!("n");
    let error = server.create(late).await.unwrap_err();
    assert_eq!(error.code(), 403);
    assert_eq!(error.status()["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let maps = server.endpoint("v1", "ConfigMap");
    eventually("the plain one goes", || async {
        let left = api.list(&maps, "n", &ListOptions::default()).await.unwrap();
        (left.len() == 1).then_some(())
    })
    .await;
    api.get(&namespaces, "", "n").await.expect("it waits for the held one");
    let target = Target { endpoint: &maps, namespace: "n", name: "held", subresource: Subresource::None };
    api.change(target, Change::MergePatch(json!({"metadata": {"finalizers": null}})), &by("t"))
        .await
        .unwrap();
    eventually("the namespace goes", || async { api.get(&namespaces, "", "n").await.is_err().then_some(()) })
        .await;
    api.get(&namespaces, "", "default").await.expect("others stay");
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    for name in ["a", "b", "c"] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"l": name});
        server.create(object).await.unwrap();
    }
    let mut which = ListOptions::default();
    which.selection.labels = "l!=b".parse().unwrap();
    let deleted = api.delete_collection(&endpoint, "default", &which, &deleting()).await.unwrap();
    assert_eq!(deleted.len(), 2);
    let left = api.list(&endpoint, "default", &ListOptions::default()).await.unwrap().objects().unwrap();
    assert_eq!(left.iter().map(|o| o.name()).collect::<Vec<_>>(), ["b"]);
}
