//! Watching in process and over HTTP.

use std::time::Duration;

use horchestra_controller::ApiError;
use horchestra_controller::rest::{EventKind, Watch, WatchItem, WatchOptions};
use horchestra_controller::store::{MemoryStore, Revision, RevisionedStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::support::{PATIENCE, Server, by, config_map, deleting};

async fn next(watch: &mut Watch) -> (EventKind, String) {
    loop {
        match tokio::time::timeout(PATIENCE, watch.next()).await.expect("an event").expect("more").unwrap() {
            WatchItem::Event(kind, object) => return (kind, object.name().to_owned()),
            WatchItem::Bookmark { .. } => {}
        }
    }
}

async fn quiet(watch: &mut Watch) {
    let more = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn what_is_there_then_what_happens() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    server.create(config_map("a", json!({}))).await.unwrap();
    for version in ["", "0"] {
        let options = WatchOptions { resource_version: version.to_owned(), ..Default::default() };
        let mut watch = api.watch(&endpoint, "default", &options).await.unwrap();
        assert_eq!(next(&mut watch).await, (EventKind::Added, "a".to_owned()));
        quiet(&mut watch).await;
    }
    let from = api.revision().to_string();
    let options = WatchOptions { resource_version: from.clone(), ..Default::default() };
    let mut watch = api.watch(&endpoint, "default", &options).await.unwrap();
    quiet(&mut watch).await;
    server.create(config_map("b", json!({}))).await.unwrap();
    api.update(&endpoint, "default", "b", config_map("b", json!({"x": "y"})), &by("t")).await.unwrap();
    server.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})).await.unwrap();
    api.delete(&endpoint, "default", "b", &deleting()).await.unwrap();
    let expected = [EventKind::Added, EventKind::Modified, EventKind::Deleted];
    for kind in expected {
        assert_eq!(next(&mut watch).await, (kind, "b".to_owned()));
    }
    quiet(&mut watch).await;
    // From an old version everything is told again, the same way.
    let mut replay = api.watch(&endpoint, "", &options).await.unwrap();
    for kind in expected {
        assert_eq!(next(&mut replay).await.0, kind);
    }
}

#[tokio::test]
async fn selectors_turn_changes_into_comings_and_goings() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let mut options = WatchOptions { resource_version: api.revision().to_string(), ..Default::default() };
    options.selection.labels = "on=yes".parse().unwrap();
    let mut watch = api.watch(&endpoint, "default", &options).await.unwrap();
    let labelled = |on: &str, n: &str| {
        let mut object = config_map("a", json!({"n": n}));
        object["metadata"]["labels"] = json!({"on": on});
        object
    };
    server.create(labelled("no", "0")).await.unwrap();
    for (on, n) in [("yes", "1"), ("yes", "2"), ("no", "3"), ("no", "4"), ("yes", "5")] {
        api.update(&endpoint, "default", "a", labelled(on, n), &by("t")).await.unwrap();
    }
    api.delete(&endpoint, "default", "a", &deleting()).await.unwrap();
    use EventKind::{Added, Deleted, Modified};
    for kind in [Added, Modified, Deleted, Added, Deleted] {
        assert_eq!(next(&mut watch).await.0, kind);
    }
    quiet(&mut watch).await;
}

#[tokio::test]
async fn a_deleted_object_carries_the_version_of_its_deletion() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let created = server.create(config_map("a", json!({}))).await.unwrap();
    let options = WatchOptions { resource_version: created.revision().to_string(), ..Default::default() };
    let mut watch = api.watch(&endpoint, "default", &options).await.unwrap();
    api.delete(&endpoint, "default", "a", &deleting()).await.unwrap();
    let Some(Ok(WatchItem::Event(EventKind::Deleted, object))) = watch.next().await else {
        panic!("a deletion")
    };
    assert_eq!(object.revision(), api.revision());
    assert_eq!(object.value()["metadata"]["resourceVersion"], object.revision().to_string());
    assert_eq!(object.uid(), created.uid());
}

#[tokio::test]
async fn the_initial_state_can_end_with_a_bookmark() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    server.create(config_map("a", json!({}))).await.unwrap();
    let options = WatchOptions { bookmarks: true, initial_events: Some(true), ..Default::default() };
    let mut watch = api.watch(&endpoint, "default", &options).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchItem::Event(EventKind::Added, _)))));
    let Some(Ok(WatchItem::Bookmark { revision, initial_end: true })) = watch.next().await else {
        panic!("its end")
    };
    assert_eq!(revision, api.revision());
}

#[tokio::test]
async fn old_and_future_versions_are_refused() {
    let store = std::sync::Arc::new(MemoryStore::default());
    let kept = store.clone();
    let server = Server::start_with(|options| options.store = kept).await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    server.create(config_map("a", json!({}))).await.unwrap();
    store.compact(Revision(api.revision())).await.unwrap();
    let at = |version: &str| WatchOptions { resource_version: version.to_owned(), ..Default::default() };
    assert!(matches!(api.watch(&endpoint, "", &at("1")).await, Err(ApiError::Expired(_))));
    assert!(matches!(api.watch(&endpoint, "", &at("999999")).await, Err(ApiError::FutureRevision { .. })));
    assert!(matches!(api.watch(&endpoint, "", &at("x")).await, Err(ApiError::BadRequest(_))));
    let reply = server.http("GET", "/api/v1/configmaps?watch=1&resourceVersion=1", &[], b"").await;
    assert_eq!(reply.code, 200);
    let event = reply.json();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
}

type Lines = tokio::io::Lines<BufReader<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>>;

async fn lines(server: &Server, path: &str, accept: &str) -> Lines {
    let mut stream = server.connect().await;
    let token = server.controller.pki().token();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    BufReader::new(stream).lines()
}

async fn event(lines: &mut Lines) -> Value {
    loop {
        let line =
            tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line").unwrap().expect("more");
        if line.starts_with('{') {
            return serde_json::from_str(&line).unwrap();
        }
    }
}

#[tokio::test]
async fn events_over_http_come_at_once() {
    let server = Server::start().await;
    let mut plain =
        lines(&server, "/api/v1/namespaces/default/configmaps?watch=true", "application/json").await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut rows = lines(&server, "/api/v1/configmaps?watch=1", table).await;
    let one = "/api/v1/namespaces/default/configmaps/b?watch=1&timeoutSeconds=600";
    let mut one = lines(&server, one, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.create(config_map("a", json!({"k": "v"}))).await.unwrap();
    server.create(config_map("b", json!({"k": "v"}))).await.unwrap();
    let first = event(&mut plain).await;
    assert_eq!(first["type"], "ADDED");
    assert_eq!(first["object"]["kind"], "ConfigMap");
    assert_eq!(first["object"]["data"]["k"], "v");
    assert_eq!(event(&mut plain).await["object"]["metadata"]["name"], "b");
    let row = event(&mut rows).await;
    assert_eq!(row["object"]["kind"], "Table");
    assert_eq!(row["object"]["rows"][0]["cells"][0], "a");
    assert_eq!(row["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(row["object"]["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(event(&mut rows).await["object"]["columnDefinitions"], Value::Null);
    let only = event(&mut one).await;
    assert_eq!(only["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(only["object"]["metadata"]["name"], "b");
}

#[tokio::test]
async fn watches_end_after_their_time_and_with_the_server() {
    let server = Server::start().await;
    let start = std::time::Instant::now();
    let path = "/api/v1/configmaps?watch=1&timeoutSeconds=1&allowWatchBookmarks=true";
    let reply = server.http("GET", path, &[], b"").await;
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(reply.json()["type"], "BOOKMARK", "the last thing is where to go on");
    let mut running = lines(&server, "/api/v1/configmaps?watch=1", "*/*").await;
    let head = running.next_line().await.unwrap().unwrap();
    assert!(head.contains("200"), "{head}");
    tokio::time::timeout(PATIENCE, server.controller.shutdown()).await.expect("a clean end");
    while let Ok(Some(_)) = running.next_line().await {}
}
