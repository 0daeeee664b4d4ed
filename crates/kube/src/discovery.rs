//! How a server serves a kind.

use horchestra_core::{GroupVersionKind, Kind};
use horchestra_runtime::TargetError;
use kube_client::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::of_request;
use crate::path::segment;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    preferred_version: Version,
}

#[derive(Deserialize, Default)]
struct Version {
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

/// How a kind is served; none if it is not. An empty version asks for the preferred one.
pub(crate) async fn resolve(client: &Client, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
    let version = match (&*kind.group, &*kind.version) {
        ("", "") => "v1".to_owned(),
        (group, "") => {
            let path = format!("/apis/{}", segment("group", group)?);
            let Some(group) = ask::<Group>(client, &path).await? else { return Ok(None) };
            group.preferred_version.version
        }
        (_, version) => version.to_owned(),
    };
    let path = match &*kind.group {
        "" => format!("/api/{}", segment("version", &version)?),
        group => format!("/apis/{}/{}", segment("group", group)?, segment("version", &version)?),
    };
    let Some(found) = ask::<Resources>(client, &path).await? else { return Ok(None) };
    // A name with a slash is a subresource; some of them have kinds of their own.
    let resource = found.resources.into_iter().find(|r| r.kind == *kind.kind && !r.name.contains('/'));
    Ok(resource.map(|r| Kind {
        gvk: GroupVersionKind::new(kind.group.clone(), version, kind.kind.clone()),
        plural: r.name.into(),
        namespaced: r.namespaced,
    }))
}

/// A document of discovery; none where the server has no such page.
async fn ask<T: DeserializeOwned>(client: &Client, path: &str) -> Result<Option<T>, TargetError> {
    let request =
        http::Request::get(path).body(Vec::new()).map_err(|e| TargetError::Invalid(e.to_string()))?;
    match client.request::<T>(request).await.map_err(of_request) {
        Ok(found) => Ok(Some(found)),
        Err(TargetError::NotFound(_)) => Ok(None),
        Err(e) => Err(e),
    }
}
