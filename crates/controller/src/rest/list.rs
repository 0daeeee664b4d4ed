//! Reading: one object, or many at one revision.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use horchestra_core::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use super::options::{ListOptions, Selection};
use crate::kinds::Endpoint;
use crate::kinds::fields::get;
use crate::object::{Object, RevisionNumber, splice};
use crate::store::{Entry, Range, Revision};
use crate::{Api, ApiError};

/// Objects read from the store at once when a selector drops some.
const PAGE: usize = 500;

/// Which objects of one kind, made once and asked for each.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    all: bool,
}

impl Filter {
    /// Errors when the kind has no such field.
    pub(crate) fn new(endpoint: &Endpoint, selection: &Selection) -> Result<Self, ApiError> {
        for path in selection.fields.paths() {
            let known = matches!(path, "metadata.name" | "metadata.namespace")
                || endpoint.version().selectable.iter().any(|s| s == path);
            if !known {
                return Err(ApiError::BadRequest(format!("field label not supported: {path}")));
            }
        }
        let all = selection.labels.is_everything() && selection.fields.is_everything();
        Ok(Self { labels: selection.labels.clone(), fields: selection.fields.clone(), all })
    }

    /// True when everything passes, so that nothing needs decoding.
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.all
            || (self.labels.matches_with(|key| {
                get(object, &["metadata", "labels"]).and_then(|l| l.get(key)).and_then(Value::as_str)
            }) && self.fields.matches(|path| Some(field_text(object, path))))
    }
}

/// The value at a dotted path as field selectors compare it.
fn field_text(object: &Value, path: &str) -> String {
    // Kubernetes calls these two differently in selectors than in objects.
    let path = match path {
        "source" => "source.component",
        "status.successful" => "status.succeeded",
        other => other,
    };
    match path.split('.').try_fold(object, |at, name| at.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None if path == "spec.unschedulable" => "false".to_owned(),
        Some(Value::Null) | None if path == "status.succeeded" => "0".to_owned(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Objects of a kind as of one revision.
#[derive(Debug, Clone)]
pub struct Listing {
    items: Vec<Item>,
    /// What it is a list of.
    pub revision: RevisionNumber,
    /// Ask with this to go on. Empty at the end.
    pub continue_token: String,
    /// How many more there are, if that is known.
    pub remaining: Option<u64>,
}

#[derive(Debug, Clone)]
enum Item {
    Stored { key: Arc<str>, value: Bytes, revision: RevisionNumber },
    Decoded(Object),
}

impl Listing {
    /// The objects, decoded.
    pub fn objects(&self) -> Result<Vec<Object>, ApiError> {
        self.items
            .iter()
            .map(|item| match item {
                Item::Decoded(object) => Ok(object.clone()),
                Item::Stored { key, value, revision } => Object::decode(key, value.clone(), *revision),
            })
            .collect()
    }

    /// How many objects are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The same list with other objects.
    pub(crate) fn with(mut self, objects: Vec<Object>) -> Self {
        self.items = objects.into_iter().map(Item::Decoded).collect();
        self
    }

    /// `metadata` of the list.
    #[must_use]
    pub fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if !self.continue_token.is_empty() {
            metadata["continue"] = json!(self.continue_token);
        }
        if let Some(remaining) = self.remaining.filter(|_| !self.continue_token.is_empty()) {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }

    /// The list as JSON.
    #[must_use]
    pub fn to_json(&self, endpoint: &Endpoint) -> Vec<u8> {
        let kind = endpoint.kind();
        let size: usize = self
            .items
            .iter()
            .map(|item| match item {
                Item::Stored { value, .. } => value.len() + 64,
                Item::Decoded(_) => 1024,
            })
            .sum();
        let mut out = Vec::with_capacity(size + 256);
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
            kind.list_kind,
            endpoint.api_version(),
            self.metadata()
        );
        out.extend_from_slice(head.as_bytes());
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            match item {
                Item::Stored { value, revision, .. } => {
                    splice(value, *revision, endpoint.api_version(), &kind.kind, &mut out);
                }
                Item::Decoded(object) => object.write(endpoint.api_version(), &kind.kind, &mut out),
            }
        }
        out.extend_from_slice(b"]}");
        out
    }
}

impl Api {
    /// The object called `name`.
    pub async fn get(&self, endpoint: &Endpoint, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let kind = endpoint.kind();
        let namespace = if kind.namespaced() { namespace } else { "" };
        match self.entry(&kind.key(namespace, name)).await? {
            Some(entry) => self.object(&entry),
            None => Err(ApiError::NotFound(Box::new(kind.subject(name)))),
        }
    }

    /// The objects of a namespace, or of all for an empty one, in the order of their keys.
    pub async fn list(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Listing, ApiError> {
        let kind = endpoint.kind();
        let prefix = kind.namespace_prefix(if kind.namespaced() { namespace } else { "" });
        let filter = Filter::new(endpoint, &options.selection)?;
        let (mut at, mut after) = self.start(&prefix, options)?;
        let mut items = Vec::new();
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        loop {
            let page_size = if options.limit == 0 {
                None
            } else if filter.all() {
                Some(limit)
            } else {
                Some(PAGE)
            };
            let page = self
                .store
                .range(&prefix, Range { after: after.clone(), limit: page_size, at: at.map(Revision) })
                .await?;
            let revision = page.revision.0;
            at = Some(revision);
            let read = page.entries.len();
            for (index, entry) in page.entries.into_iter().enumerate() {
                let key = entry.key.clone();
                if let Some(item) = self.item(entry, &filter)? {
                    items.push(item);
                }
                let last = index + 1 == read;
                if items.len() >= limit && (page.more || !last) {
                    let remaining =
                        if filter.all() { Some((page.remaining + read - index - 1) as u64) } else { None };
                    let continue_token = token(revision, key.strip_prefix(&prefix).unwrap_or(&key));
                    return Ok(Listing { items, revision, continue_token, remaining });
                }
                after = Some(key);
            }
            if !page.more {
                return Ok(Listing { items, revision, continue_token: String::new(), remaining: None });
            }
        }
    }

    fn item(&self, entry: Entry, filter: &Filter) -> Result<Option<Item>, ApiError> {
        if filter.all() {
            return Ok(Some(Item::Stored { key: entry.key, value: entry.value, revision: entry.modified.0 }));
        }
        // Not through the cache: one pass over many objects would drive the busy ones out.
        let object = Object::decode(&entry.key, entry.value, entry.modified.0)?;
        Ok(filter.matches(object.value()).then_some(Item::Decoded(object)))
    }

    /// Revision and key to start from.
    fn start(
        &self,
        prefix: &str,
        options: &ListOptions,
    ) -> Result<(Option<RevisionNumber>, Option<Arc<str>>), ApiError> {
        if !options.continue_token.is_empty() {
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(ApiError::BadRequest(
                    "specifying resource version is not allowed when using continue".to_owned(),
                ));
            }
            let (revision, start) = parse_token(&options.continue_token).ok_or_else(|| {
                ApiError::BadRequest("continue key is not valid: start the list again".to_owned())
            })?;
            return Ok((Some(revision), Some(format!("{prefix}{start}").into())));
        }
        let wanted = parse_revision(&options.resource_version)?;
        if options.exact && wanted == 0 {
            return Err(ApiError::BadRequest(
                "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\" and without one"
                    .to_owned(),
            ));
        }
        self.reached(wanted)?;
        Ok((options.exact.then_some(wanted), None))
    }

    /// Errors when the version that a read asks for is in the future.
    pub(crate) fn check_reached(&self, resource_version: &str) -> Result<(), ApiError> {
        self.reached(parse_revision(resource_version)?)
    }

    /// Errors when `wanted` is in the future.
    pub(crate) fn reached(&self, wanted: RevisionNumber) -> Result<(), ApiError> {
        let current = self.store.revision().0;
        if wanted > current {
            return Err(ApiError::FutureRevision { requested: wanted, current });
        }
        Ok(())
    }
}

/// A resourceVersion of a request; empty is zero.
pub(crate) fn parse_revision(text: &str) -> Result<RevisionNumber, ApiError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        ApiError::BadRequest(format!(
            "resourceVersion: Invalid value: {text:?}: it must be a number from a former answer"
        ))
    })
}

fn token(revision: RevisionNumber, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

fn parse_token(token: &str) -> Option<(RevisionNumber, String)> {
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let revision = value.get("rv")?.as_u64().filter(|rv| *rv > 0)?;
    let start = value.get("start")?.as_str()?;
    if value.get("v")?.as_str()? != "meta.k8s.io/v1" || start.is_empty() || start.contains("..") {
        return None;
    }
    Some((revision, start.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_parse_back_and_garbage_does_not() {
        assert_eq!(parse_token(&token(7, "ns/name")), Some((7, "ns/name".to_owned())));
        for bad in ["", "x", "e30", &URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#)] {
            assert_eq!(parse_token(bad), None, "{bad}");
        }
    }
}
