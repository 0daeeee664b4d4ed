//! Listing, in pages.

use horchestra_core::{Kind, Object};
use horchestra_runtime::{Listing, Revision, Scope, TargetError};
use kube_client::Client;
use kube_core::Request;
use kube_core::params::ListParams;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{of_building, of_request};
use crate::path::{collection, segment};

/// Objects of one page; the size that kubectl asks for.
const PAGE: u32 = 500;
/// How often a listing begins anew because its pages expired meanwhile.
const ATTEMPTS: usize = 3;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    // Servers have answered an empty list with `null`.
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// Where the objects of a scope are listed and watched, and the field selector that narrows it.
pub(crate) fn place(kind: &Kind, scope: &Scope) -> Result<(Request, Option<String>), TargetError> {
    match scope {
        Scope::All => Ok((collection(kind, "")?, None)),
        Scope::Namespace(namespace) => Ok((collection(kind, namespace)?, None)),
        Scope::Name(namespace, name) => {
            let selector = format!("metadata.name={}", segment("name", name)?);
            Ok((collection(kind, namespace)?, Some(selector)))
        }
    }
}

/// An object as the server sends it. In lists of built-in kinds each lacks what the list says once.
pub(crate) fn object(kind: &Kind, mut value: Value) -> Result<Object, TargetError> {
    if let Some(map) = value.as_object_mut() {
        map.entry("apiVersion").or_insert_with(|| kind.gvk.api_version().into());
        map.entry("kind").or_insert_with(|| (*kind.gvk.kind).into());
    }
    Object::from_value(&value).map_err(|e| TargetError::Unavailable {
        message: format!("an object of {kind} cannot be read: {e}"),
        retry_after: None,
    })
}

/// All objects in a scope at one revision.
pub(crate) async fn list(client: &Client, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
    let mut attempt = 1;
    loop {
        match pages(client, kind, scope).await {
            // The first page is too old for the next one by now.
            Err(TargetError::Gone(_)) if attempt < ATTEMPTS => attempt += 1,
            other => return other,
        }
    }
}

async fn pages(client: &Client, kind: &Kind, scope: &Scope) -> Result<Listing, TargetError> {
    let (place, selector) = place(kind, scope)?;
    let mut params = ListParams { field_selector: selector, limit: Some(PAGE), ..ListParams::default() };
    let mut objects = Vec::new();
    loop {
        let request = place.list(&params).map_err(of_building)?;
        let text = client.request_text(request).await.map_err(of_request)?;
        let page: Page = serde_json::from_str(&text).map_err(|e| TargetError::Unavailable {
            message: format!("the list of {kind} cannot be read: {e}"),
            retry_after: None,
        })?;
        for item in page.items.into_iter().flatten() {
            objects.push(object(kind, item)?);
        }
        if page.metadata.next.is_empty() {
            return Ok(Listing { objects, revision: Revision(page.metadata.resource_version) });
        }
        params.continue_token = Some(page.metadata.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horchestra_core::GroupVersionKind;
    use serde_json::json;

    fn kind() -> Kind {
        Kind { gvk: GroupVersionKind::new("batch", "v1", "Job"), plural: "jobs".into(), namespaced: true }
    }

    #[test]
    fn an_object_of_a_list_gets_the_type_of_the_list() {
        let bare = object(&kind(), json!({"metadata": {"name": "a", "namespace": "n"}})).unwrap();
        assert_eq!((bare.api_version(), &*bare.group_kind().kind, &**bare.name()), ("batch/v1", "Job", "a"));
        let typed = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}});
        assert_eq!(&*object(&kind(), typed).unwrap().group_kind().kind, "Secret");
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for value in [json!(7), json!([]), json!({}), json!({"metadata": {}}), json!("x"), Value::Null] {
            assert!(object(&kind(), value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn one_object_is_watched_by_its_name() {
        let (place, selector) = place(&kind(), &Scope::Name("n".into(), "a".into())).unwrap();
        assert_eq!(place.url_path, "/apis/batch/v1/namespaces/n/jobs");
        assert_eq!(selector.as_deref(), Some("metadata.name=a"));
    }
}
