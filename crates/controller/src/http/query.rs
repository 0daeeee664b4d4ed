//! The query of a URL, and the options in it.

use std::sync::Arc;
use std::time::Duration;

use horchestra_core::selector::{FieldSelector, LabelSelector};
use serde_json::Value;

use crate::ApiError;
use crate::kinds::Propagation;
use crate::rest::{
    DeleteOptions, FieldValidation, IncludeObject, ListOptions, Selection, WatchOptions, WriteOptions,
};
use crate::user::User;

/// Parameters of one query.
const MAX_PARAMETERS: usize = 64;
/// Longest field manager, as in Kubernetes.
const MAX_MANAGER: usize = 128;

/// Decoded parameters, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MAX_PARAMETERS);
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
                })
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name) {
            "" if self.0.iter().all(|(n, _)| n != name) => Ok(None),
            "0" | "false" | "False" | "FALSE" | "f" | "F" => Ok(Some(false)),
            "" | "1" | "true" | "True" | "TRUE" | "t" | "T" => Ok(Some(true)),
            other => {
                Err(ApiError::BadRequest(format!("{name}: Invalid value: {other:?}: use true or false")))
            }
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                ApiError::BadRequest(format!(
                    "{name}: Invalid value: {text:?}: must be a number that is not negative"
                ))
            }),
        }
    }

    /// True when a watch is asked for.
    pub(crate) fn watch(&self) -> Result<bool, ApiError> {
        Ok(self.flag("watch")?.unwrap_or(false))
    }

    pub(crate) fn include_object(&self) -> Result<IncludeObject, ApiError> {
        match self.get("includeObject") {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "None" => Ok(IncludeObject::None),
            "Object" => Ok(IncludeObject::Object),
            other => Err(ApiError::BadRequest(format!(
                "includeObject: Unsupported value: {other:?}: supported values: None, Metadata, Object"
            ))),
        }
    }

    fn selection(&self, name: &str) -> Result<Selection, ApiError> {
        let bad = |what: &str, error: &dyn std::fmt::Display| {
            ApiError::BadRequest(format!("unable to parse {what}: {error}"))
        };
        let labels = LabelSelector::parse(self.get("labelSelector")).map_err(|e| bad("labelSelector", &e))?;
        let mut text = self.get("fieldSelector").to_owned();
        if !name.is_empty() {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str("metadata.name=");
            text.push_str(name);
        }
        let fields = FieldSelector::parse(&text).map_err(|e| bad("fieldSelector", &e))?;
        Ok(Selection { labels, fields })
    }

    pub(crate) fn list(&self) -> Result<ListOptions, ApiError> {
        let resource_version = self.get("resourceVersion").to_owned();
        let exact = match self.get("resourceVersionMatch") {
            "" | "NotOlderThan" => false,
            "Exact" => true,
            other => {
                return Err(ApiError::BadRequest(format!(
                    "resourceVersionMatch: Unsupported value: {other:?}: supported values: Exact, NotOlderThan"
                )));
            }
        };
        if !self.get("resourceVersionMatch").is_empty() && resource_version.is_empty() {
            return Err(ApiError::BadRequest(
                "resourceVersionMatch is forbidden unless resourceVersion is provided".to_owned(),
            ));
        }
        Ok(ListOptions {
            selection: self.selection("")?,
            limit: self.number("limit")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            continue_token: self.get("continue").to_owned(),
            resource_version,
            exact,
        })
    }

    /// `name` restricts the watch to one object.
    pub(crate) fn watch_options(&self, name: &str) -> Result<WatchOptions, ApiError> {
        let initial_events = self.flag("sendInitialEvents")?;
        let how = self.get("resourceVersionMatch");
        if initial_events.is_some() && how != "NotOlderThan" {
            return Err(ApiError::BadRequest(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan".to_owned(),
            ));
        }
        if initial_events.is_none() && !how.is_empty() {
            return Err(ApiError::BadRequest(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided".to_owned(),
            ));
        }
        Ok(WatchOptions {
            selection: self.selection(name)?,
            resource_version: self.get("resourceVersion").to_owned(),
            bookmarks: self.flag("allowWatchBookmarks")?.unwrap_or(false),
            initial_events,
            timeout: self.number("timeoutSeconds")?.filter(|n| *n > 0).map(Duration::from_secs),
        })
    }

    fn dry_run(&self) -> Result<bool, ApiError> {
        match self.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(ApiError::BadRequest(format!(
                "dryRun: Unsupported value: {other:?}: supported values: \"All\""
            ))),
        }
    }

    /// `agent` is the User-Agent, from which the field manager is taken when none is named.
    pub(crate) fn write(&self, user: &Arc<User>, agent: &str, apply: bool) -> Result<WriteOptions, ApiError> {
        let named = self.get("fieldManager");
        if named.len() > MAX_MANAGER || named.chars().any(char::is_control) {
            return Err(ApiError::BadRequest(format!(
                "fieldManager: Invalid value: at most {MAX_MANAGER} printable characters"
            )));
        }
        let field_manager = if named.is_empty() && !apply {
            agent
                .split('/')
                .next()
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_control())
                .take(MAX_MANAGER)
                .collect()
        } else {
            named.to_owned()
        };
        let field_validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            other => {
                return Err(ApiError::BadRequest(format!(
                    "fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
                )));
            }
        };
        let force = self.flag("force")?;
        if force.is_some() && !apply {
            return Err(ApiError::BadRequest("force is forbidden for non-apply patch".to_owned()));
        }
        Ok(WriteOptions {
            user: user.clone(),
            dry_run: self.dry_run()?,
            field_manager,
            field_validation,
            force: force.unwrap_or(false),
        })
    }

    /// Options of a delete, from the query and the body, which wins.
    pub(crate) fn delete(&self, user: &Arc<User>, body: &Value) -> Result<DeleteOptions, ApiError> {
        let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let policy = Some(text("propagationPolicy"))
            .filter(|p| !p.is_empty())
            .unwrap_or_else(|| self.get("propagationPolicy").to_owned());
        let orphan = match body.get("orphanDependents").and_then(Value::as_bool) {
            Some(orphan) => Some(orphan),
            None => self.flag("orphanDependents")?,
        };
        let propagation = match (policy.as_str(), orphan) {
            ("", None) => None,
            ("", Some(true)) | ("Orphan", None) => Some(Propagation::Orphan),
            ("", Some(false)) | ("Background", None) => Some(Propagation::Background),
            ("Foreground", None) => Some(Propagation::Foreground),
            (_, Some(_)) => {
                return Err(ApiError::BadRequest(
                    "orphanDependents and propagationPolicy cannot be both set".to_owned(),
                ));
            }
            (other, None) => {
                return Err(ApiError::BadRequest(format!(
                    "propagationPolicy: Unsupported value: {other:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
                )));
            }
        };
        let grace =
            body.get("gracePeriodSeconds").and_then(Value::as_i64).or(match self.get("gracePeriodSeconds") {
                "" => None,
                text => Some(text.parse().map_err(|_| {
                    ApiError::BadRequest(format!(
                        "gracePeriodSeconds: Invalid value: {text:?}: must be a number"
                    ))
                })?),
            });
        if grace.is_some_and(|seconds| seconds < 0) {
            return Err(ApiError::BadRequest(
                "gracePeriodSeconds: Invalid value: must be greater than or equal to 0".to_owned(),
            ));
        }
        let dry_run = match body.get("dryRun").and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) => self.dry_run()?,
            Some([only]) if only == "All" => true,
            Some(_) => {
                return Err(ApiError::BadRequest(
                    "dryRun: Unsupported value: supported values: \"All\"".to_owned(),
                ));
            }
        };
        let precondition = |field: &str| {
            body.get("preconditions").and_then(|p| p.get(field)).and_then(Value::as_str).map(str::to_owned)
        };
        Ok(DeleteOptions {
            user: user.clone(),
            dry_run,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            propagation,
        })
    }
}

/// Undoes percent-encoding. What is not valid UTF-8 afterwards is replaced, and then matches no name.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0);
                out.push(u8::try_from(digit(*high) * 16 + digit(*low)).unwrap_or(b'?'));
                rest = after;
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_decode() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch&limit=5&x=%zz");
        assert_eq!(query.get("labelSelector"), "a=b,c in (d)");
        assert!(query.watch().unwrap());
        assert_eq!(query.list().unwrap().limit, 5);
        assert_eq!(query.get("x"), "%zz");
        assert_eq!(decode("%C3%BC%"), "ü%");
    }

    #[test]
    fn garbage_is_a_bad_request() {
        for text in ["limit=-1", "limit=x", "watch=maybe", "resourceVersionMatch=Exact", "includeObject=All"]
        {
            let query = Query::parse(text);
            let errors = [query.list().err(), query.watch().err(), query.include_object().err()];
            assert!(errors.into_iter().flatten().any(|e| e.code() == 400), "{text}");
        }
    }
}
