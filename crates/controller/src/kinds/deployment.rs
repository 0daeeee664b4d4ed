//! `apps/v1` Deployment.

use horchestra_core::field_error::FieldError;
use serde_json::{Value, json};

use super::columns::Column;
use super::fields::{fill, get, number, object_at, object_mut};
use super::pod_template;
use super::strategy::Strategy;

/// Defaults and rules of Deployments (Kubernetes' `pkg/apis/apps`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deployment;

impl Strategy for Deployment {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object_mut(object, &["spec"]) else { return };
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        if let Some(strategy) = object_at(object, &["spec", "strategy"]) {
            fill(strategy, "type", "RollingUpdate");
            if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
                && let Some(rolling) = object_at(object, &["spec", "strategy", "rollingUpdate"])
            {
                fill(rolling, "maxUnavailable", "25%");
                fill(rolling, "maxSurge", "25%");
            }
        }
        pod_template::default(object);
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(n) = number(new, &["spec", "replicas"])
            && n < 0
        {
            errors.push(FieldError::invalid(
                "spec.replicas",
                &json!(n),
                "must be greater than or equal to 0",
            ));
        }
        pod_template::validate(new, &mut errors);
        let policy = super::fields::text(new, &["spec", "template", "spec", "restartPolicy"]);
        if policy != "Always" {
            errors.push(FieldError::not_supported(
                "spec.template.spec.restartPolicy",
                &json!(policy),
                &["Always"],
            ));
        }
        match get(new, &["spec", "selector"]) {
            None => errors.push(FieldError::required("spec.selector", "")),
            Some(selector) => {
                let labels =
                    get(new, &["spec", "template", "metadata", "labels"]).cloned().unwrap_or(json!({}));
                let wanted = selector.get("matchLabels").and_then(Value::as_object);
                let empty = wanted.is_none_or(serde_json::Map::is_empty)
                    && super::fields::list(selector, &["matchExpressions"]).is_empty();
                if empty {
                    errors.push(FieldError::invalid(
                        "spec.selector",
                        selector,
                        "empty selector is invalid for deployment",
                    ));
                } else if wanted.is_some_and(|w| w.iter().any(|(k, v)| labels.get(k) != Some(v))) {
                    errors.push(FieldError::invalid(
                        "spec.template.metadata.labels",
                        &labels,
                        "`selector` does not match template `labels`",
                    ));
                }
            }
        }
        if let Some(old) = old
            && get(old, &["spec", "selector"]) != get(new, &["spec", "selector"])
        {
            let value = get(new, &["spec", "selector"]).cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid("spec.selector", &value, "field is immutable"));
        }
        errors
    }
}

fn count(object: &Value, field: &str) -> i64 {
    number(object, &["status", field]).unwrap_or(0)
}

/// As `kubectl get deployments -o wide` shows them.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        super::builtin::name_column(),
        Column::code("Ready", "string", 0, |o, _| {
            json!(format!("{}/{}", count(o, "readyReplicas"), number(o, &["spec", "replicas"]).unwrap_or(0)))
        }),
        Column::code("Up-to-date", "string", 0, |o, _| json!(count(o, "updatedReplicas"))),
        Column::code("Available", "string", 0, |o, _| json!(count(o, "availableReplicas"))),
        Column::age(),
        Column::code("Containers", "string", 1, |o, _| pod_template::container_cells(o, "name")),
        Column::code("Images", "string", 1, |o, _| pod_template::container_cells(o, "image")),
        Column::code("Selector", "string", 1, |o, _| super::builtin::selector_cell(o)),
    ]
}
