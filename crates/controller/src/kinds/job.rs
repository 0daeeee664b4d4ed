//! `batch/v1` Job.

use horchestra_core::field_error::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::columns::{Column, duration};
use super::fields::{fill, get, list, number, object_at, object_mut, text};
use super::pod_template;
use super::strategy::{Propagation, Strategy};

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// Defaults and rules of Jobs (Kubernetes' `pkg/apis/batch`, `pkg/registry/batch/job`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job;

impl Strategy for Job {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object_mut(object, &["spec"]) else { return };
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        let limit = if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
        fill(spec, "backoffLimit", limit);
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        let policy = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        fill(spec, "podReplacementPolicy", policy);
        fill(spec, "manualSelector", false);
        pod_template::default(object);
        labels(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        if get(object, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
            return;
        }
        let uid = text(object, &["metadata", "uid"]).to_owned();
        let name = text(object, &["metadata", "name"]).to_owned();
        if get(object, &["spec", "template"]).is_some_and(Value::is_object)
            && let Some(labels) = object_at(object, &["spec", "template", "metadata", "labels"])
        {
            for (key, value) in
                [(UID_LABEL, &uid), (NAME_LABEL, &name), ("controller-uid", &uid), ("job-name", &name)]
            {
                fill(labels, key, value.clone());
            }
        }
        if let Some(selector) = object_at(object, &["spec", "selector", "matchLabels"]) {
            fill(selector, UID_LABEL, uid);
        }
        labels(object);
    }

    fn prepare_update(&self, old: &Value, new: &mut Value) {
        // What was generated is not in the manifest that is applied again.
        if get(new, &["spec", "selector"]).is_none()
            && let (Some(selector), Some(spec)) =
                (get(old, &["spec", "selector"]), object_mut(new, &["spec"]))
        {
            spec.insert("selector".to_owned(), selector.clone());
        }
        let generated: Map<String, Value> = get(old, &["spec", "template", "metadata", "labels"])
            .and_then(Value::as_object)
            .map(|labels| {
                let ours = [UID_LABEL, NAME_LABEL, "controller-uid", "job-name"];
                labels
                    .iter()
                    .filter(|(k, _)| ours.contains(&k.as_str()))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect()
            })
            .unwrap_or_default();
        if !generated.is_empty()
            && get(new, &["spec", "template"]).is_some_and(Value::is_object)
            && let Some(labels) = object_at(new, &["spec", "template", "metadata", "labels"])
        {
            for (key, value) in generated {
                fill(labels, &key, value);
            }
        }
        labels(new);
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for field in
            ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"]
        {
            if let Some(n) = number(new, &["spec", field])
                && n < 0
            {
                errors.push(FieldError::invalid(
                    format!("spec.{field}"),
                    &json!(n),
                    "must be greater than or equal to 0",
                ));
            }
        }
        pod_template::validate(new, &mut errors);
        let policy = text(new, &["spec", "template", "spec", "restartPolicy"]);
        if !matches!(policy, "OnFailure" | "Never") {
            errors.push(FieldError::not_supported(
                "spec.template.spec.restartPolicy",
                &json!(policy),
                &["OnFailure", "Never"],
            ));
        }
        if let Some(old) = old {
            let suspended = get(old, &["spec", "suspend"]) == Some(&Value::Bool(true));
            let indexed = text(new, &["spec", "completionMode"]) == "Indexed";
            for field in ["selector", "completionMode", "completions", "template"] {
                let (before, after) = (get(old, &["spec", field]), get(new, &["spec", field]));
                let mutable = (field == "template" && suspended) || (field == "completions" && indexed);
                if before != after && !mutable {
                    let value = after.cloned().unwrap_or(Value::Null);
                    errors.push(FieldError::invalid(format!("spec.{field}"), &value, "field is immutable"));
                }
            }
        }
        errors
    }

    fn propagation(&self) -> Propagation {
        // batch/v1 keeps its old default: clients that mean otherwise say so, and kubectl does.
        Propagation::Orphan
    }
}

/// A Job without labels has those of its template.
fn labels(object: &mut Value) {
    let template = get(object, &["spec", "template", "metadata", "labels"]).cloned();
    let own = get(object, &["metadata", "labels"]).and_then(Value::as_object).is_some_and(|l| !l.is_empty());
    if let (false, Some(labels)) = (own, template)
        && let Some(metadata) = object_at(object, &["metadata"])
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn condition(object: &Value, kind: &str) -> bool {
    list(object, &["status", "conditions"])
        .iter()
        .any(|c| text(c, &["type"]) == kind && text(c, &["status"]) == "True")
}

fn status(object: &Value) -> &'static str {
    if condition(object, "Complete") {
        "Complete"
    } else if condition(object, "Failed") {
        "Failed"
    } else if get(object, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else if condition(object, "Suspended") {
        "Suspended"
    } else if condition(object, "FailureTarget") {
        "FailureTarget"
    } else if condition(object, "SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(object: &Value) -> String {
    let done = number(object, &["status", "succeeded"]).unwrap_or(0);
    match (number(object, &["spec", "completions"]), number(object, &["spec", "parallelism"]).unwrap_or(0)) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn took(object: &Value, now: Timestamp) -> String {
    let time = |field| text(object, &["status", field]).parse::<Timestamp>().ok();
    time("startTime").map_or_else(String::new, |start| {
        let end = time("completionTime").unwrap_or(now);
        duration(end.as_second() - start.as_second())
    })
}

/// As `kubectl get jobs -o wide` shows them.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        super::builtin::name_column(),
        Column::code("Status", "string", 0, |o, _| json!(status(o))),
        Column::code("Completions", "string", 0, |o, _| json!(completions(o))),
        Column::code("Duration", "string", 0, |o, now| json!(took(o, now))),
        Column::age(),
        Column::code("Containers", "string", 1, |o, _| pod_template::container_cells(o, "name")),
        Column::code("Images", "string", 1, |o, _| pod_template::container_cells(o, "image")),
        Column::code("Selector", "string", 1, |o, _| super::builtin::selector_cell(o)),
    ]
}
