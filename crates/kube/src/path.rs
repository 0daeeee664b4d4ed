//! Where things are served. Source: Kubernetes API concepts, "Resource URIs".

use horchestra_core::Kind;
use horchestra_runtime::TargetError;
use kube_core::Request;

/// The collection of a kind; of all namespaces if the namespace is empty.
pub(crate) fn collection(kind: &Kind, namespace: &str) -> Result<Request, TargetError> {
    let group = match &*kind.gvk.group {
        "" => format!("/api/{}", segment("version", &kind.gvk.version)?),
        group => format!("/apis/{}/{}", segment("group", group)?, segment("version", &kind.gvk.version)?),
    };
    let plural = segment("plural", &kind.plural)?;
    Ok(Request::new(if kind.namespaced && !namespace.is_empty() {
        format!("{group}/namespaces/{}/{plural}", segment("namespace", namespace)?)
    } else {
        format!("{group}/{plural}")
    }))
}

/// Something that can stand between two slashes without meaning anything else there.
/// Source: `IsValidPathSegmentName` of Kubernetes' apimachinery.
pub(crate) fn segment<'t>(what: &str, text: &'t str) -> Result<&'t str, TargetError> {
    let safe = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '%' | '?' | '#' | '\\');
    if text.is_empty() || matches!(text, "." | "..") || !text.chars().all(safe) {
        return Err(TargetError::Invalid(format!(
            "{what} {text:?} cannot be part of a path; use letters, digits, '-' and '.'"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horchestra_core::GroupVersionKind;

    fn kind(group: &str, plural: &str, namespaced: bool) -> Kind {
        Kind { gvk: GroupVersionKind::new(group, "v1", "X"), plural: plural.into(), namespaced }
    }

    #[test]
    fn paths_as_documented() {
        let path = |k: &Kind, ns: &str| collection(k, ns).unwrap().url_path;
        assert_eq!(path(&kind("", "pods", true), "n"), "/api/v1/namespaces/n/pods");
        assert_eq!(path(&kind("", "pods", true), ""), "/api/v1/pods");
        assert_eq!(path(&kind("", "nodes", false), "n"), "/api/v1/nodes");
        assert_eq!(path(&kind("batch", "jobs", true), "n"), "/apis/batch/v1/namespaces/n/jobs");
    }

    #[test]
    fn nothing_leaves_its_segment() {
        for bad in ["", ".", "..", "a/b", "a?b", "a%2fb", "a#b", "a b", "ä"] {
            assert!(collection(&kind("", "pods", true), bad).is_err() || bad.is_empty(), "{bad}");
            assert!(segment("name", bad).is_err(), "{bad}");
        }
    }
}
