//! Requests that no honest client sends, and the limits.

use horchestra_controller::http::Limits;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{PATIENCE, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn nobody_is_let_in_without_identity() {
    let server = Server::start().await;
    for path in ["/api", "/apis", "/api/v1", MAPS, "/openapi/v3", "/metrics", "/", "/nonsense"] {
        let reply = server.anonymous("GET", path, &[], b"").await;
        assert_eq!(reply.code, 401, "{path}");
        assert_eq!(reply.status()["reason"], "Unauthorized", "{path}");
    }
    for header in ["Bearer wrong", "Bearer ", "Basic YWRtaW46YWRtaW4=", "nonsense", ""] {
        let reply = server.anonymous("GET", "/api", &[("Authorization", header)], b"").await;
        assert_eq!(reply.code, 401, "{header}");
    }
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(server.anonymous("GET", path, &[], b"").await.body, "ok", "{path}");
    }
    let version = server.anonymous("GET", "/version", &[], b"").await.json();
    assert_eq!(version["gitVersion"], "v1.36.0+horchestra");
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = Server::start().await;
    let big = vec![b' '; 3 * 1024 * 1024 + 1];
    let reply = server.http("POST", MAPS, &[], &big).await;
    assert_eq!(reply.code, 413, "{}", reply.head);
    assert_eq!(reply.status()["reason"], "RequestEntityTooLarge");
    let announced = [("Content-Length", "99999999999")];
    assert_eq!(server.http("POST", MAPS, &announced, b"{}").await.code, 413);
    let mut chunked = format!("{:x}\r\n", big.len()).into_bytes();
    chunked.extend_from_slice(&big);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let token = format!("Bearer {}", server.controller.pki().token());
    let mut stream = server.connect().await;
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let _ = stream.write_all(&chunked).await;
    let mut reply = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut reply)).await.unwrap();
    assert!(
        String::from_utf8_lossy(&reply).starts_with("HTTP/1.1 413"),
        "{}",
        String::from_utf8_lossy(&reply)
    );
}

#[tokio::test]
async fn bodies_that_are_no_objects() {
    let server = Server::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = format!(
        "{{\"metadata\":{{\"name\":\"a\"}},\"data\":{}1{}}}",
        "{\"a\":".repeat(5000),
        "}".repeat(5000)
    );
    for (kind, body) in [
        ("empty", String::new()),
        ("cut off", "{".to_owned()),
        ("a list", "[]".to_owned()),
        ("a word", "\"x\"".to_owned()),
        ("null", "null".to_owned()),
        ("deep", deep),
        ("deep object", deep_object),
        ("trailing", "{} {}".to_owned()),
        ("a number too many", "{\"metadata\":{\"name\":1}}".to_owned()),
        ("not text", "\u{0}".to_owned()),
    ] {
        let reply = server.http("POST", MAPS, &[("Content-Type", "application/json")], body.as_bytes()).await;
        assert!(matches!(reply.code, 400 | 422), "{kind}: {}", reply.code);
        reply.status();
    }
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    let reply = server.http("POST", MAPS, &[("Content-Type", "application/yaml")], bomb.as_bytes()).await;
    assert_eq!(reply.code, 400);
    let invalid = [b'{', b'"', 0xff, b'"', b':', b'1', b'}'];
    assert_eq!(server.http("POST", MAPS, &[], &invalid).await.code, 400);
    server.http("GET", "/readyz", &[], b"").await;
}

#[tokio::test]
async fn keys_that_stand_twice() {
    let server = Server::start().await;
    let body = br#"{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}"#;
    let reply = server.http("POST", &format!("{MAPS}?fieldValidation=Strict"), &[], body).await;
    assert_eq!(reply.code, 400);
    assert!(
        reply.status()["message"].as_str().unwrap().contains("duplicate field \"data.x\""),
        "{}",
        reply.body
    );
    let reply = server.http("POST", MAPS, &[], body).await;
    assert_eq!(reply.code, 201);
    assert!(reply.head.contains("299 - \"duplicate field \\\"data.x\\\"\""), "{}", reply.head);
    assert_eq!(reply.json()["data"]["x"], "2", "the last one counts");
}

#[tokio::test]
async fn media_types() {
    let server = Server::start().await;
    let protobuf = [("Content-Type", "application/vnd.kubernetes.protobuf")];
    let custom = b"k8s\0\x0a\x17\x0a\x0eexample.com/v1\x12\x05Thing";
    let reply = server.http("POST", MAPS, &protobuf, custom).await;
    assert_eq!(reply.code, 415, "{}", reply.body);
    assert_eq!(reply.status()["reason"], "UnsupportedMediaType");
    assert_eq!(server.http("POST", MAPS, &protobuf, b"k8s\0\xff\xff").await.code, 400);
    let cbor = [("Content-Type", "application/cbor")];
    assert_eq!(server.http("POST", MAPS, &cbor, b"\xa0").await.code, 415);
    let accept = [("Accept", "application/vnd.kubernetes.protobuf")];
    assert_eq!(server.http("GET", MAPS, &accept, b"").await.code, 406);
    let patch = [("Content-Type", "application/json")];
    assert_eq!(server.http("PATCH", &format!("{MAPS}/a"), &patch, b"{}").await.code, 415);
    let gzip = [("Content-Encoding", "gzip")];
    assert_eq!(server.http("POST", MAPS, &gzip, b"{}").await.code, 415);
    let yaml = [("Content-Type", "application/yaml")];
    let reply = server.http("POST", MAPS, &yaml, b"metadata:\n  name: z\ndata: {a: b}\n").await;
    assert_eq!(reply.code, 201, "{}", reply.body);
}

#[tokio::test]
async fn paths_that_name_nothing() {
    let server = Server::start().await;
    for path in [
        "/nonsense",
        "/api/v2",
        "/api/v1/nonsense",
        "/apis/nonsense",
        "/apis/batch/v2",
        "/apis/batch/v1/nonsense",
        "/apis/batch/v1/namespaces/default/jobs/a/nonsense",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/configmaps/a",
        "/openapi/v3/apis/nonsense/v1",
        "/api/v1/namespaces/default/configmaps/a/b/c/d",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces//configmaps/a",
        "//",
        "/api/v1/namespaces/default/configmaps/%ff",
    ] {
        let reply = server.http("GET", path, &[], b"").await;
        assert_eq!(reply.code, 404, "{path}: {}", reply.body);
        if path.contains("nonsense") {
            assert_eq!(reply.status()["reason"], "NotFound");
        }
    }
    for (method, path) in [
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("TRACE", MAPS),
        ("POST", "/version"),
        ("DELETE", "/apis"),
    ] {
        assert_eq!(server.http(method, path, &[], b"{}").await.code, 405, "{method} {path}");
    }
}

#[tokio::test]
async fn queries_that_make_no_sense() {
    let server = Server::start().await;
    for query in [
        "resourceVersion=abc",
        "resourceVersion=-1",
        "limit=x",
        "continue=garbage",
        "labelSelector=a%20b%20c",
        "labelSelector=(",
        "fieldSelector=data.x%3Dy",
        "watch=perhaps",
        "watch=1&resourceVersion=abc",
        "watch=1&timeoutSeconds=x",
        "resourceVersionMatch=Exact",
        "watch=1&sendInitialEvents=true",
        "labelSelector=A..B%3D%24",
    ] {
        let reply = server.http("GET", &format!("{MAPS}?{query}"), &[], b"").await;
        assert_eq!(reply.code, 400, "{query}: {}", reply.body);
        reply.status();
    }
    let future = server.http("GET", &format!("{MAPS}?resourceVersion=99999999"), &[], b"").await;
    assert_eq!(future.code, 504);
    assert_eq!(future.status()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    let body = br#"{"metadata":{"name":"a"}}"#;
    for query in ["dryRun=Some", "fieldValidation=Maybe", "fieldManager=a%00b", "force=true"] {
        let reply = server.http("POST", &format!("{MAPS}?{query}"), &[], body).await;
        assert_eq!(reply.code, 400, "{query}: {}", reply.body);
    }
    for body in [
        r#"{"propagationPolicy":"Sideways"}"#,
        r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#,
        r#"{"gracePeriodSeconds":-1}"#,
        "[",
        r#"{"dryRun":["Some"]}"#,
    ] {
        let reply = server.http("DELETE", &format!("{MAPS}/a"), &[], body.as_bytes()).await;
        assert_eq!(reply.code, 400, "{body}: {}", reply.body);
    }
}

#[tokio::test]
async fn headers_are_bounded() {
    let server = Server::start().await;
    let long = "x".repeat(200_000);
    let reply = server.http("GET", MAPS, &[("X-Long", &long)], b"").await;
    assert!(matches!(reply.code, 0 | 431), "{}", reply.code);
    assert_eq!(server.http("GET", MAPS, &[], b"").await.code, 200, "others are served");
}

#[tokio::test]
async fn garbage_instead_of_tls_or_http() {
    let server = Server::start().await;
    let address = server.controller.address();
    let mut plain = tokio::net::TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut out = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut out)).await.unwrap();
    assert!(!String::from_utf8_lossy(&out).contains("200"));
    let mut tls = server.connect().await;
    tls.write_all(b"\x00\x01\x02 nonsense\r\n\r\n").await.unwrap();
    let _ = tokio::time::timeout(PATIENCE, tls.read_to_end(&mut out)).await.unwrap();
    assert_eq!(server.http("GET", MAPS, &[], b"").await.code, 200);
}

#[tokio::test]
async fn too_many_watches_are_turned_away() {
    let limits = Limits { watches: 1, ..Limits::default() };
    let server = Server::start_with(|options| options.limits = limits).await;
    let token = server.controller.pki().token().to_owned();
    let mut first = server.connect().await;
    let request = format!("GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    first.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    first.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let second = server.http("GET", &format!("{MAPS}?watch=1"), &[], b"").await;
    assert_eq!(second.code, 429);
    assert_eq!(second.status()["details"]["retryAfterSeconds"], 1);
    drop(first);
    super::support::eventually("there is room again", || async {
        let reply = server.http("GET", &format!("{MAPS}?watch=1&timeoutSeconds=1"), &[], b"").await;
        (reply.code == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn deletes_answer_as_kubernetes_does() {
    let server = Server::start().await;
    let body = json!({"metadata": {"name": "a"}}).to_string();
    let created = server.http("POST", MAPS, &[], body.as_bytes()).await;
    assert_eq!(created.code, 201);
    let uid = created.json()["metadata"]["uid"].clone();
    let reply = server.http("DELETE", &format!("{MAPS}/a"), &[], b"").await;
    assert_eq!(reply.code, 200);
    assert_eq!(
        reply.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid},
        })
    );
    let reply = server.http("GET", MAPS, &[], b"").await.json();
    assert_eq!(reply["kind"], "ConfigMapList");
    assert_eq!(reply["items"].as_array().unwrap().iter().filter(|i| i["metadata"]["name"] == "a").count(), 0);
}

#[tokio::test]
async fn metrics_count() {
    let server = Server::start().await;
    server.http("GET", MAPS, &[], b"").await;
    let text = server.http("GET", "/metrics", &[], b"").await.body;
    assert!(
        text.contains("apiserver_request_total{verb=\"list\",resource=\"configmaps\",code=\"200\"} 1"),
        "{text}"
    );
}
