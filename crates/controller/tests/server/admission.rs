//! Other parts of the program have a say.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use horchestra_controller::admission::{Admission, AdmissionRequest, Operation};
use horchestra_controller::rest::WriteOptions;
use horchestra_controller::{ApiError, Cause};
use serde_json::json;

use super::support::{Server, by, config_map, deleting};

#[derive(Default)]
struct Guard {
    seen: Mutex<Vec<(Operation, String, String, bool)>>,
}

#[async_trait]
impl Admission for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    fn wants(&self, request: &AdmissionRequest<'_>) -> bool {
        request.endpoint.kind().kind == "ConfigMap"
    }

    async fn admit(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let user = request.user.name.clone();
        self.seen.lock().unwrap().push((request.operation, request.name.to_owned(), user, request.dry_run));
        match request.operation {
            Operation::Create => assert!(request.old.is_none() && request.new.is_some()),
            Operation::Update => assert!(request.old.is_some() && request.new.is_some()),
            Operation::Delete => assert!(request.old.is_some() && request.new.is_none()),
        }
        if request.new.or(request.old).is_some_and(|object| object["data"]["bad"] == "yes") {
            return Err(ApiError::Denied {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "admission webhook \"guard\" denied the request: bad".to_owned(),
                causes: vec![Cause {
                    reason: "x".to_owned(),
                    message: "bad".to_owned(),
                    field: "data.bad".to_owned(),
                }],
            });
        }
        Ok(())
    }
}

#[tokio::test]
async fn writes_are_asked_about_and_can_be_denied() {
    let guard = Arc::new(Guard::default());
    let added = guard.clone();
    let server = Server::start_with(|options| options.admission.push(added)).await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let error = server.create(config_map("a", json!({"bad": "yes"}))).await.unwrap_err();
    let status = error.status();
    assert_eq!(status["code"], 403);
    assert_eq!(status["message"], "admission webhook \"guard\" denied the request: bad");
    assert_eq!(status["details"]["causes"][0]["field"], "data.bad");
    assert_eq!(api.get(&endpoint, "default", "a").await.unwrap_err().code(), 404);
    server.create(config_map("a", json!({}))).await.unwrap();
    let bad = config_map("a", json!({"bad": "yes"}));
    assert_eq!(api.update(&endpoint, "default", "a", bad, &by("t")).await.unwrap_err().code(), 403);
    let dry = WriteOptions { dry_run: true, ..by("t") };
    api.update(&endpoint, "default", "a", config_map("a", json!({"x": "1"})), &dry).await.unwrap();
    api.delete(&endpoint, "default", "a", &deleting()).await.unwrap();
    server.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})).await.unwrap();
    let seen = guard.seen.lock().unwrap().clone();
    let operations: Vec<Operation> = seen.iter().map(|s| s.0).collect();
    use Operation::{Create, Delete, Update};
    assert_eq!(operations, [Create, Create, Update, Update, Delete]);
    assert!(seen[3].3, "dry runs are asked about too");
    assert_eq!(seen[0].2, "system:test");
}
