//! What a URL's path names.

use super::query::decode;
use crate::ApiError;
use crate::name::is_path_segment;

/// Segments of a path.
const MAX_SEGMENTS: usize = 16;

/// The resource that a path names. Everything else is matched by the whole path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty when the path names only a group and version.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

/// The parts of `/api/v1/...` or `/apis/GROUP/VERSION/...`; `None` for other paths.
pub(crate) fn parse(path: &str) -> Result<Option<ResourcePath>, ApiError> {
    let segments: Vec<String> = path.trim_matches('/').split('/').take(MAX_SEGMENTS).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Ok(None),
    };
    if rest.iter().any(|segment| !is_path_segment(segment)) {
        return Err(ApiError::UnknownPath);
    }
    let (namespace, rest) = match rest {
        // The namespace itself, and its subresources.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [] => ("", "", ""),
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        [resource, name, subresource] => (*resource, *name, *subresource),
        _ => return Err(ApiError::UnknownPath),
    };
    let owned = str::to_owned;
    Ok(Some(ResourcePath {
        group: owned(group),
        version: owned(version),
        resource: owned(resource),
        namespace: owned(namespace),
        name: owned(name),
        subresource: owned(subresource),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        let p = parse(path).unwrap().unwrap();
        [p.group, p.version, p.namespace, p.resource, p.name, p.subresource].join("|")
    }

    #[test]
    fn paths_name_resources() {
        assert_eq!(shown("/api/v1"), "|v1||||");
        assert_eq!(shown("/api/v1/nodes/a"), "|v1||nodes|a|");
        assert_eq!(shown("/api/v1/namespaces"), "|v1||namespaces||");
        assert_eq!(shown("/api/v1/namespaces/x"), "|v1||namespaces|x|");
        assert_eq!(shown("/api/v1/namespaces/x/status"), "|v1||namespaces|x|status");
        assert_eq!(shown("/api/v1/namespaces/x/secrets/y"), "|v1|x|secrets|y|");
        assert_eq!(shown("/apis/batch/v1/namespaces/x/jobs/y/status"), "batch|v1|x|jobs|y|status");
        assert_eq!(shown("/apis/batch/v1/jobs"), "batch|v1||jobs||");
        assert_eq!(parse("/healthz").unwrap(), None);
        assert_eq!(parse("/apis").unwrap(), None);
        assert_eq!(parse("/apis/batch").unwrap(), None);
    }

    #[test]
    fn odd_segments_name_nothing() {
        for path in ["/api/v1/nodes/..", "/api/v1/nodes/a%2fb", "/api/v1/nodes//status", "/api/v1/a/b/c/d/e"]
        {
            assert!(parse(path).is_err(), "{path}");
        }
    }
}
