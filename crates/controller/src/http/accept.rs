//! What a client wants to get.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::ApiError;

/// Entries of an Accept header that are looked at.
const MAX_ENTRIES: usize = 32;

/// The form of an answer. The version is that of `meta.k8s.io` or `apidiscovery.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object as it is.
    Plain,
    /// Rows.
    Table(&'static str),
    /// Metadata only.
    Partial(&'static str),
    /// Aggregated discovery.
    Discovery,
}

/// The first form that the client accepts and that `offered` allows.
pub(crate) fn form(headers: &HeaderMap, offered: fn(&Form) -> bool) -> Result<Form, ApiError> {
    let Some(header) = headers.get(ACCEPT) else { return Ok(Form::Plain) };
    let text = header.to_str().unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(Form::Plain);
    }
    text.split(',')
        .take(MAX_ENTRIES)
        .filter_map(entry)
        .find(|form| *form == Form::Plain || offered(form))
        .ok_or_else(|| ApiError::NotAcceptable("application/json".to_owned()))
}

fn entry(text: &str) -> Option<Form> {
    let mut parts = text.split(';').map(str::trim);
    if !matches!(parts.next()?.to_ascii_lowercase().as_str(), "application/json" | "*/*" | "application/*") {
        return None;
    }
    let (mut kind, mut group, mut version) = ("", "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let meta = match version {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => "",
    };
    match (kind, group) {
        ("", _) => Some(Form::Plain),
        ("Table", "meta.k8s.io") if !meta.is_empty() => Some(Form::Table(meta)),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io") if !meta.is_empty() => {
            Some(Form::Partial(meta))
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io") if version == "v2" => Some(Form::Discovery),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &'static str) -> Result<Form, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        form(&headers, |_| true)
    }

    #[test]
    fn what_kubectl_asks_for() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(asked(table).unwrap(), Form::Table("v1"));
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(asked(discovery).unwrap(), Form::Discovery);
        assert_eq!(asked("application/vnd.kubernetes.protobuf, application/json").unwrap(), Form::Plain);
        assert_eq!(asked("*/*").unwrap(), Form::Plain);
        assert_eq!(asked("application/vnd.kubernetes.protobuf").unwrap_err().code(), 406);
        assert_eq!(asked("application/json;as=Nonsense;v=v1;g=x").unwrap_err().code(), 406);
    }
}
