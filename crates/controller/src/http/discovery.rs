//! Paths that say what the server has: discovery, OpenAPI, version, health.

use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};

use super::accept::{self, Form};
use super::answer::{self, JSON};
use super::body::Answer;
use super::handler::Handler;
use super::path::ResourcePath;
use crate::ApiError;
use crate::kinds::{document, document_v2};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// True for paths that need no identity.
pub(crate) fn open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/healthz" | "/version" | "/version/")
        || ["/livez/", "/readyz/", "/healthz/"].iter().any(|prefix| path.starts_with(prefix))
}

/// Answers a path that is no resource.
pub(crate) fn answer(
    handler: &Handler,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<Answer>, ApiError> {
    if method != Method::GET && method != Method::HEAD {
        return Err(ApiError::MethodNotAllowed(
            "the server does not allow this method on the requested resource".to_owned(),
        ));
    }
    let kinds = handler.api.kinds();
    let trimmed = path.trim_end_matches('/');
    match trimmed {
        "/livez" | "/healthz" => Ok(answer::bytes(200, "text/plain; charset=utf-8", "ok")),
        "/readyz" => {
            handler.ready()?;
            Ok(answer::bytes(200, "text/plain; charset=utf-8", "ok"))
        }
        "/version" => Ok(answer::json(200, &version())),
        "/metrics" => {
            let text = handler.metrics.text(handler.api.store.revision().0);
            Ok(answer::bytes(200, "application/openmetrics-text; version=1.0.0; charset=utf-8", text))
        }
        "/api" => match accept::form(headers, |form| *form == Form::Discovery)? {
            Form::Discovery => Ok(answer::bytes(200, AGGREGATED, kinds.discovery().aggregated_core.clone())),
            _ => Ok(answer::json(
                200,
                &json!({
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": handler.address}],
                }),
            )),
        },
        "/apis" => match accept::form(headers, |form| *form == Form::Discovery)? {
            Form::Discovery => Ok(answer::bytes(200, AGGREGATED, kinds.discovery().aggregated.clone())),
            _ => Ok(answer::bytes(200, JSON, kinds.discovery().groups.clone())),
        },
        "/openapi/v3" => Ok(answer::json(200, &document::index(&kinds))),
        "/openapi/v2" => Ok(openapi_v2(headers, &kinds)),
        "" if path.len() <= 1 => Ok(answer::json(200, &root(&kinds))),
        other => {
            if let Some(rest) = other.strip_prefix("/openapi/v3/") {
                let document = match rest.split('/').collect::<Vec<_>>().as_slice() {
                    ["api", version] => document::document(&kinds, "", version),
                    ["apis", group, version] => document::document(&kinds, group, version),
                    _ => None,
                };
                return document.map(|document| answer::json(200, &document)).ok_or(ApiError::UnknownPath);
            }
            let group = other.strip_prefix("/apis/").ok_or(ApiError::UnknownPath)?;
            let document = kinds.discovery().group.get(group).ok_or(ApiError::UnknownPath)?;
            Ok(answer::bytes(200, JSON, document.clone()))
        }
    }
}

/// The resources of a group and version.
pub(crate) fn resources(handler: &Handler, path: &ResourcePath) -> Result<Response<Answer>, ApiError> {
    let name =
        if path.group.is_empty() { path.version.clone() } else { format!("{}/{}", path.group, path.version) };
    let kinds = handler.api.kinds();
    let list = kinds.discovery().resources.get(&name).ok_or(ApiError::UnknownPath)?;
    Ok(answer::bytes(200, JSON, list.clone()))
}

/// client-go asks for protobuf alone, under two names.
fn openapi_v2(headers: &HeaderMap, kinds: &crate::kinds::Snapshot) -> Response<Answer> {
    let accept = headers.get(http::header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if accept.contains("proto-openapi.spec.v2") {
        answer::bytes(200, document_v2::MEDIA_TYPE, document_v2::document(kinds))
    } else {
        answer::json(200, &document_v2::plain())
    }
}

fn root(kinds: &crate::kinds::Snapshot) -> Value {
    let mut paths: Vec<String> = ["/api", "/api/v1", "/apis"].map(str::to_owned).into();
    paths.extend(kinds.discovery().group.keys().map(|group| format!("/apis/{group}")));
    paths.extend(
        kinds.discovery().resources.keys().filter(|k| k.contains('/')).map(|gv| format!("/apis/{gv}")),
    );
    paths.extend(["/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": crate::VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
