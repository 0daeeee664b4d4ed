//! Creating, reading, changing: what an object becomes and when that is refused.

use horchestra_controller::ApiError;
use horchestra_controller::rest::{
    Change, FieldValidation, ListOptions, Selection, Subresource, Target, WriteOptions,
};
use serde_json::{Value, json};

use super::support::{Server, by, config_map, deleting};

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}},
    })
}

#[tokio::test]
async fn a_new_object_is_stamped() {
    let server = Server::start().await;
    let created = server.create(config_map("a", json!({"k": "v"}))).await.unwrap();
    let metadata = &created.value()["metadata"];
    assert_eq!(metadata["name"], "a");
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["resourceVersion"], created.revision().to_string());
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(metadata["managedFields"][0]["manager"], "test");
    assert_eq!(metadata["managedFields"][0]["operation"], "Update");
    assert_eq!(metadata.get("generation"), None, "config maps have none");
    let read = server.api().get(&server.endpoint("v1", "ConfigMap"), "default", "a").await.unwrap();
    assert_eq!(read.value(), created.value());
}

#[tokio::test]
async fn type_meta_is_filled_in_and_must_fit() {
    let server = Server::start().await;
    let endpoint = server.endpoint("v1", "ConfigMap");
    let bare = json!({"metadata": {"name": "a"}, "data": {}});
    let created = server.api().create(&endpoint, "default", bare, &by("t")).await.unwrap().object;
    assert_eq!(created.value()["apiVersion"], "v1");
    assert_eq!(created.value()["kind"], "ConfigMap");
    for wrong in [
        json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "b"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}),
        json!({"metadata": {"name": "b", "namespace": "other"}}),
        json!({"metadata": []}),
        json!([]),
        json!("x"),
    ] {
        let error = server.api().create(&endpoint, "default", wrong.clone(), &by("t")).await.unwrap_err();
        assert_eq!(error.code(), 400, "{wrong}: {error}");
    }
}

#[tokio::test]
async fn names_are_checked_and_generated() {
    let server = Server::start().await;
    for bad in ["A", "a_b", "-a", "a/b", "..", "", &"a".repeat(254)] {
        let error = server.create(config_map(bad, json!({}))).await.unwrap_err();
        assert_eq!(error.code(), 422, "{bad}: {error}");
        assert_eq!(error.status()["details"]["causes"][0]["field"], "metadata.name", "{bad}");
    }
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}});
    let one = server.create(generated.clone()).await.unwrap();
    let two = server.create(generated).await.unwrap();
    assert!(one.name().starts_with("g-") && one.name().len() == 7, "{}", one.name());
    assert_ne!(one.name(), two.name());
    let error =
        server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}})).await;
    assert_eq!(error.unwrap_err().code(), 422, "namespaces are labels");
}

#[tokio::test]
async fn a_second_one_of_the_same_name_is_refused() {
    let server = Server::start().await;
    server.create(config_map("a", json!({}))).await.unwrap();
    let error = server.create(config_map("a", json!({}))).await.unwrap_err();
    assert_eq!(
        error.status(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
            "details": {"name": "a", "kind": "configmaps"}, "code": 409,
        })
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::start().await;
    let error = server.api().get(&server.endpoint("batch/v1", "Job"), "default", "x").await.unwrap_err();
    assert_eq!(
        error.status(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "jobs.batch \"x\" not found", "reason": "NotFound",
            "details": {"name": "x", "group": "batch", "kind": "jobs"}, "code": 404,
        })
    );
    let mut elsewhere = config_map("a", json!({}));
    elsewhere["metadata"]["namespace"] = json!("nowhere");
    let error = server.create(elsewhere).await.unwrap_err();
    assert_eq!(error.to_string(), "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn updates_are_optimistic() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let first = server.create(config_map("a", json!({"n": "1"}))).await.unwrap();
    let mut next = first.value().clone();
    next["data"]["n"] = json!("2");
    let second = api.update(&endpoint, "default", "a", next.clone(), &by("t")).await.unwrap().object;
    assert!(second.revision() > first.revision());
    assert_eq!(second.uid(), first.uid());
    next["data"]["n"] = json!("3");
    let error = api.update(&endpoint, "default", "a", next.clone(), &by("t")).await.unwrap_err();
    assert_eq!(error.reason(), "Conflict", "{error}");
    assert!(error.to_string().contains("the object has been modified"), "{error}");
    // Without a version the last one wins, as for Kubernetes' own kinds.
    next["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    api.update(&endpoint, "default", "a", next.clone(), &by("t")).await.unwrap();
    next["metadata"]["uid"] = json!("another");
    let error = api.update(&endpoint, "default", "a", next.clone(), &by("t")).await.unwrap_err();
    assert_eq!(error.code(), 409, "{error}");
    next["metadata"]["name"] = json!("b");
    let error = api.update(&endpoint, "default", "a", next, &by("t")).await.unwrap_err();
    assert_eq!(error.code(), 400, "{error}");
    let error =
        api.update(&endpoint, "default", "z", config_map("z", json!({})), &by("t")).await.unwrap_err();
    assert_eq!(error.code(), 404);
}

#[tokio::test]
async fn writing_the_same_again_changes_nothing() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let first = server.create(config_map("a", json!({"n": "1"}))).await.unwrap();
    let again =
        api.update(&endpoint, "default", "a", first.value().clone(), &by("other")).await.unwrap().object;
    assert_eq!(again.revision(), first.revision());
    let applied = config_map("b", json!({"n": "1"}));
    let one = api.apply(&endpoint, "default", "b", applied.clone(), &by("m")).await.unwrap();
    assert!(one.created);
    let two = api.apply(&endpoint, "default", "b", applied, &by("m")).await.unwrap();
    assert!(!two.created);
    assert_eq!(one.object.revision(), two.object.revision());
}

#[tokio::test]
async fn what_the_server_keeps_cannot_be_changed() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("batch/v1", "Job"));
    let first = server.create(job("a")).await.unwrap();
    let mut next = first.value().clone();
    next["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    next["metadata"]["generation"] = json!(99);
    next["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
    next["metadata"]["labels"]["new"] = json!("label");
    next["status"] = json!({"succeeded": 5});
    let second = api.update(&endpoint, "default", "a", next, &by("t")).await.unwrap().object;
    let metadata = &second.value()["metadata"];
    assert_eq!(metadata["creationTimestamp"], first.value()["metadata"]["creationTimestamp"]);
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata.get("deletionTimestamp"), None);
    assert_eq!(metadata["labels"]["new"], "label");
    assert_eq!(second.value().get("status"), None, "status is written apart");
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_alone() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("batch/v1", "Job"));
    let first = server.create(job("a")).await.unwrap();
    assert_eq!(first.value()["metadata"]["generation"], 1);
    let target =
        Target { endpoint: &endpoint, namespace: "default", name: "a", subresource: Subresource::None };
    let patch = |p: Value| api.change(target, Change::MergePatch(p), OPTIONS.get_or_init(|| by("t")));
    let labelled = patch(json!({"metadata": {"labels": {"x": "y"}}})).await.unwrap().object;
    assert_eq!(labelled.value()["metadata"]["generation"], 1);
    let changed = patch(json!({"spec": {"suspend": true}})).await.unwrap().object;
    assert_eq!(changed.value()["metadata"]["generation"], 2);
    let status = Target { subresource: Subresource::Status, ..target };
    let body = json!({"spec": {"suspend": false}, "metadata": {"labels": null}, "status": {"active": 1}});
    let written = api.change(status, Change::MergePatch(body), &by("kubelet")).await.unwrap().object;
    assert_eq!(written.value()["metadata"]["generation"], 2);
    assert_eq!(written.value()["spec"]["suspend"], true, "only status is written through status");
    assert_eq!(written.value()["metadata"]["labels"]["x"], "y");
    assert_eq!(written.value()["status"]["active"], 1);
    let managers = written.value()["metadata"]["managedFields"].as_array().unwrap();
    let kubelet = managers.iter().find(|m| m["manager"] == "kubelet").unwrap();
    assert_eq!(kubelet["subresource"], "status");
    assert_eq!(kubelet["fieldsV1"], json!({"f:status": {".": {}, "f:active": {}}}));
    let again =
        api.change(status, Change::MergePatch(json!({"status": {"active": 1}})), &by("kubelet")).await;
    assert_eq!(again.unwrap().object.revision(), written.revision(), "an unchanged status is no event");
}

static OPTIONS: std::sync::OnceLock<WriteOptions> = std::sync::OnceLock::new();

#[tokio::test]
async fn patches_of_each_kind() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    server.create(config_map("a", json!({"x": "1", "y": "2"}))).await.unwrap();
    let target =
        Target { endpoint: &endpoint, namespace: "default", name: "a", subresource: Subresource::None };
    let options = by("t");
    let merged =
        api.change(target, Change::MergePatch(json!({"data": {"x": null, "z": "3"}})), &options).await;
    assert_eq!(merged.unwrap().object.value()["data"], json!({"y": "2", "z": "3"}));
    let operations =
        json!([{"op": "test", "path": "/data/y", "value": "2"}, {"op": "remove", "path": "/data/y"}]);
    let patched = api.change(target, Change::JsonPatch(operations.clone()), &options).await.unwrap();
    assert_eq!(patched.object.value()["data"], json!({"z": "3"}));
    let failed = api.change(target, Change::JsonPatch(operations), &options).await.unwrap_err();
    assert_eq!(failed.code(), 422, "{failed}");
    let malformed =
        api.change(target, Change::JsonPatch(json!({"op": "remove"})), &options).await.unwrap_err();
    assert_eq!(malformed.code(), 400, "{malformed}");
    let renamed = api.change(target, Change::MergePatch(json!({"metadata": {"name": "b"}})), &options).await;
    assert_eq!(renamed.unwrap_err().code(), 400);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"z": "4"}});
    assert_eq!(api.change(target, Change::MergePatch(stale), &options).await.unwrap_err().code(), 409);
}

#[tokio::test]
async fn patches_at_once_all_count() {
    let server = Server::start().await;
    server.create(config_map("a", json!({}))).await.unwrap();
    let writers: Vec<_> = (0..16)
        .map(|n| {
            let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
            tokio::spawn(async move {
                let target = Target {
                    endpoint: &endpoint,
                    namespace: "default",
                    name: "a",
                    subresource: Subresource::None,
                };
                let patch = json!({"data": {format!("k{n}"): "v"}});
                api.change(target, Change::MergePatch(patch), &by("t")).await.unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let read = server.api().get(&server.endpoint("v1", "ConfigMap"), "default", "a").await.unwrap();
    assert_eq!(read.value()["data"].as_object().unwrap().len(), 16);
}

#[tokio::test]
async fn apply_owns_and_conflicts() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let apply = |manager: &str, data: Value, force: bool| {
        let options = WriteOptions { force, ..by(manager) };
        let (api, endpoint) = (api.clone(), endpoint.clone());
        async move { api.apply(&endpoint, "default", "a", config_map("a", data), &options).await }
    };
    apply("one", json!({"x": "1", "y": "1"}), false).await.unwrap();
    let error = apply("two", json!({"x": "2"}), false).await.unwrap_err();
    let status = error.status();
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".data.x");
    assert!(error.to_string().starts_with("Apply failed with 1 conflict: conflict with \"one\""), "{error}");
    let forced = apply("two", json!({"x": "2"}), true).await.unwrap().object;
    assert_eq!(forced.value()["data"], json!({"x": "2", "y": "1"}));
    let less = apply("one", json!({}), false).await.unwrap().object;
    assert_eq!(less.value()["data"], json!({"x": "2"}), "what one applied no longer is gone");
    let nameless = WriteOptions { field_manager: String::new(), ..by("x") };
    let error =
        api.apply(&endpoint, "default", "a", config_map("a", json!({})), &nameless).await.unwrap_err();
    assert!(error.to_string().contains("fieldManager"), "{error}");
}

#[tokio::test]
async fn unknown_fields_by_validation() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("batch/v1", "Job"));
    let mut odd = job("a");
    odd["spec"]["nonsense"] = json!(1);
    odd["spec"]["template"]["spec"]["containers"][0]["imege"] = json!("x");
    odd["metadata"]["lables"] = json!({});
    let with = |field_validation| WriteOptions { field_validation, ..by("t") };
    let error =
        api.create(&endpoint, "default", odd.clone(), &with(FieldValidation::Strict)).await.unwrap_err();
    assert_eq!(error.code(), 400);
    for path in ["spec.nonsense", "spec.template.spec.containers[0].imege", "metadata.lables"] {
        assert!(error.to_string().contains(&format!("unknown field \"{path}\"")), "{path}: {error}");
    }
    assert!(
        error
            .to_string()
            .starts_with("Job in version \"v1\" cannot be handled as a Job: strict decoding error")
    );
    let written = api.create(&endpoint, "default", odd.clone(), &with(FieldValidation::Warn)).await.unwrap();
    assert_eq!(written.warnings.len(), 3, "{:?}", written.warnings);
    assert_eq!(written.object.value()["spec"].get("nonsense"), None);
    odd["metadata"]["name"] = json!("b");
    let written = api.create(&endpoint, "default", odd, &with(FieldValidation::Ignore)).await.unwrap();
    assert_eq!(written.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    let dry = WriteOptions { dry_run: true, ..by("t") };
    let created = api.create(&endpoint, "default", config_map("a", json!({})), &dry).await.unwrap().object;
    assert!(!created.uid().is_empty());
    assert_eq!(created.value()["metadata"].get("resourceVersion"), None);
    assert_eq!(api.get(&endpoint, "default", "a").await.unwrap_err().code(), 404);
    let real = server.create(config_map("a", json!({"x": "1"}))).await.unwrap();
    assert_eq!(
        api.create(&endpoint, "default", config_map("a", json!({})), &dry).await.unwrap_err().code(),
        409
    );
    let changed =
        api.update(&endpoint, "default", "a", config_map("a", json!({"x": "2"})), &dry).await.unwrap();
    assert_eq!(changed.object.value()["data"]["x"], "2");
    let options = horchestra_controller::rest::DeleteOptions { dry_run: true, ..deleting() };
    api.delete(&endpoint, "default", "a", &options).await.unwrap();
    let read = api.get(&endpoint, "default", "a").await.unwrap();
    assert_eq!(read.value(), real.value());
}

#[tokio::test]
async fn jobs_get_what_a_cluster_gives_them() {
    let server = Server::start().await;
    let created = server.create(job("a")).await.unwrap();
    let spec = &created.value()["spec"];
    let uid = created.uid();
    assert_eq!(spec["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    assert_eq!(spec["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a");
    assert_eq!(spec["template"]["metadata"]["labels"]["controller-uid"], uid);
    for (field, value) in [
        ("backoffLimit", json!(6)),
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    let (api, endpoint) = (server.api(), server.endpoint("batch/v1", "Job"));
    // The manifest again, without what was generated, is no change.
    let again = api.update(&endpoint, "default", "a", job("a"), &by("test")).await.unwrap().object;
    assert_eq!(again.revision(), created.revision());
    let mut other = job("a");
    other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    let error = api.update(&endpoint, "default", "a", other, &by("test")).await.unwrap_err();
    assert!(error.to_string().contains("spec.template: Invalid value"), "{error}");
    assert!(error.to_string().ends_with("field is immutable"), "{error}");
}

#[tokio::test]
async fn bad_workloads_name_every_field() {
    let server = Server::start().await;
    let error = server
        .create(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
            "spec": {"parallelism": -1, "template": {"spec": {"containers": [{"name": "A"}]}}},
        }))
        .await
        .unwrap_err();
    assert_eq!(error.code(), 422);
    let status = error.status();
    let fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.parallelism",
            "spec.template.spec.containers[0].name",
            "spec.template.spec.containers[0].image",
            "spec.template.spec.restartPolicy",
        ]
    );
    assert_eq!(status["details"]["kind"], "Job");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "y"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        },
    });
    let error = server.create(deployment).await.unwrap_err();
    assert!(error.to_string().contains("`selector` does not match template `labels`"), "{error}");
}

#[tokio::test]
async fn secrets_fold_and_keep() {
    let server = Server::start().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "YQ=="}, "stringData": {"b": "b"}, "immutable": true,
    });
    let created = server.create(secret).await.unwrap();
    assert_eq!(created.value()["data"], json!({"a": "YQ==", "b": "Yg=="}));
    assert_eq!(created.value()["type"], "Opaque");
    assert_eq!(created.value().get("stringData"), None);
    let (api, endpoint) = (server.api(), server.endpoint("v1", "Secret"));
    let mut next = created.value().clone();
    next["data"]["a"] = json!("Yg==");
    assert_eq!(api.update(&endpoint, "default", "s", next.clone(), &by("t")).await.unwrap_err().code(), 422);
    next["data"]["a"] = json!("YQ==");
    next["immutable"] = json!(false);
    assert_eq!(api.update(&endpoint, "default", "s", next, &by("t")).await.unwrap_err().code(), 422);
    for bad in [json!({"a/b": "YQ=="}), json!({"..a": "YQ=="}), json!({"a": "not base64"}), json!({"a": 1})] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": bad});
        let error = server.create(secret).await.unwrap_err();
        assert!(matches!(error.code(), 400 | 422), "{bad}: {error}");
    }
}

#[tokio::test]
async fn lists_select_and_continue() {
    let server = Server::start().await;
    let (api, endpoint) = (server.api(), server.endpoint("v1", "ConfigMap"));
    for n in 0..10 {
        let mut object = config_map(&format!("c{n}"), json!({}));
        object["metadata"]["labels"] = json!({"odd": (n % 2 == 1).to_string()});
        server.create(object).await.unwrap();
    }
    let all = api.list(&endpoint, "default", &ListOptions::default()).await.unwrap();
    assert_eq!(all.len(), 10);
    assert_eq!(all.revision, api.revision());
    let select = |labels: &str, fields: &str| Selection {
        labels: labels.parse().unwrap(),
        fields: fields.parse().unwrap(),
    };
    let named = |listing: &horchestra_controller::rest::Listing| -> Vec<String> {
        listing.objects().unwrap().iter().map(|o| o.name().to_owned()).collect()
    };
    let odd = ListOptions { selection: select("odd=true", ""), ..Default::default() };
    assert_eq!(named(&api.list(&endpoint, "default", &odd).await.unwrap()), ["c1", "c3", "c5", "c7", "c9"]);
    let one = ListOptions { selection: select("", "metadata.name=c4"), ..Default::default() };
    assert_eq!(named(&api.list(&endpoint, "", &one).await.unwrap()), ["c4"]);
    let unknown = ListOptions { selection: select("", "data.x=y"), ..Default::default() };
    assert_eq!(api.list(&endpoint, "", &unknown).await.unwrap_err().code(), 400);

    // Pages are of one moment, whatever happens meanwhile.
    for selector in ["", "odd in (true,false)"] {
        let mut options = ListOptions { limit: 4, selection: select(selector, ""), ..Default::default() };
        let mut seen = Vec::new();
        let mut revisions = Vec::new();
        loop {
            let page = api.list(&endpoint, "default", &options).await.unwrap();
            seen.extend(named(&page));
            revisions.push(page.revision);
            if page.continue_token.is_empty() {
                break;
            }
            assert_eq!(page.len(), 4);
            if selector.is_empty() {
                assert_eq!(page.remaining, Some(10 - seen.len() as u64));
            }
            let extra = config_map(&format!("d{}{}", seen.len(), selector.len()), json!({}));
            server.create(extra).await.unwrap();
            options.continue_token = page.continue_token;
        }
        assert_eq!(seen.iter().filter(|name| name.starts_with('c')).count(), 10, "{seen:?}");
        assert!(revisions.windows(2).all(|pair| pair[0] == pair[1]));
        for n in [4, 8] {
            let name = format!("d{n}{}", selector.len());
            api.delete(&endpoint, "default", &name, &deleting()).await.unwrap();
        }
    }
    let garbage = ListOptions { continue_token: "xyz".to_owned(), ..Default::default() };
    assert_eq!(api.list(&endpoint, "default", &garbage).await.unwrap_err().code(), 400);
    let future = ListOptions { resource_version: "999999".to_owned(), ..Default::default() };
    let error = api.list(&endpoint, "default", &future).await.unwrap_err();
    assert!(matches!(error, ApiError::FutureRevision { .. }), "{error}");
    let letters = ListOptions { resource_version: "abc".to_owned(), ..Default::default() };
    assert_eq!(api.list(&endpoint, "default", &letters).await.unwrap_err().code(), 400);
}

#[tokio::test]
async fn scale_is_the_number_of_replicas() {
    let server = Server::start().await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        },
    });
    server.create(deployment).await.unwrap();
    let (api, endpoint) = (server.api(), server.endpoint("apps/v1", "Deployment"));
    let scale = api.scale(&endpoint, "default", "d").await.unwrap();
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"]["selector"], "app=x");
    let to = |n: i64| {
        move |mut scale: Value| {
            scale["spec"]["replicas"] = json!(n);
            Ok(scale)
        }
    };
    let scaled = api.change_scale(&endpoint, "default", "d", to(5), &by("t")).await.unwrap();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let read = api.get(&endpoint, "default", "d").await.unwrap();
    assert_eq!(read.value()["spec"]["replicas"], 5);
    assert_eq!(read.value()["metadata"]["generation"], 2);
    assert_eq!(api.change_scale(&endpoint, "default", "d", to(-1), &by("t")).await.unwrap_err().code(), 422);
    let jobs = server.endpoint("batch/v1", "Job");
    assert_eq!(api.scale(&jobs, "default", "d").await.unwrap_err().code(), 404);
}
