//! Whether an object does what it is there for.

use serde_json::Value;

/// Whether an object is ready, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is.
    Ready,
    /// Not yet, in words.
    NotReady(String),
    /// It never will be unless somebody changes it, in words.
    Failed(String),
}

/// The readiness of a live object, by its API group and kind. Kinds without a rule are ready as
/// soon as they exist.
pub fn readiness(object: &Value) -> Readiness {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    match (group, text("kind")) {
        ("", "Namespace") => match object.pointer("/status/phase").and_then(Value::as_str) {
            Some("Active") => Readiness::Ready,
            phase => Readiness::NotReady(format!("phase is {}", phase.unwrap_or("not set"))),
        },
        ("", "Pod") => all_true(object, &["Initialized", "ContainersReady", "Ready"]),
        ("apps", "Deployment") => observed(object).unwrap_or_else(|| {
            and(all_true(object, &["Available"]), || {
                counts(object, &["replicas", "availableReplicas", "readyReplicas", "updatedReplicas"])
            })
        }),
        ("apps", "ReplicaSet" | "StatefulSet") => observed(object).unwrap_or_else(|| {
            counts(object, &["replicas", "availableReplicas", "readyReplicas", "updatedReplicas"])
        }),
        ("apps", "DaemonSet") => observed(object).unwrap_or_else(|| {
            counts(
                object,
                &[
                    "desiredNumberScheduled",
                    "currentNumberScheduled",
                    "updatedNumberScheduled",
                    "numberAvailable",
                    "numberReady",
                ],
            )
        }),
        ("batch", "Job") => match condition(object, "Failed") {
            Some(failed) if is_true(failed) => {
                Readiness::Failed(format!("job has failed{}", message(failed)))
            }
            _ => all_true(object, &["Complete"]),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => all_true(object, &["Established"]),
        ("yoke.cd", "Airway" | "Flight" | "ClusterFlight") | ("runtime.horchestra.dev", _) => {
            all_true(object, &["Ready"])
        }
        _ if is_instance(object) => all_true(object, &["Ready"]),
        _ => Readiness::Ready,
    }
}

/// Whether an object is an instance of an Airway: it has one as its owner.
fn is_instance(object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|o| {
        o.get("kind").and_then(Value::as_str) == Some("Airway")
            && o.get("apiVersion").and_then(Value::as_str).is_some_and(|v| v.starts_with("yoke.cd/"))
    })
}

fn and(first: Readiness, second: impl FnOnce() -> Readiness) -> Readiness {
    match first {
        Readiness::Ready => second(),
        other => other,
    }
}

fn condition<'v>(object: &'v Value, type_: &str) -> Option<&'v Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|c| c.get("type").and_then(Value::as_str) == Some(type_))
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}

fn message(condition: &Value) -> String {
    let text = |f: &str| condition.get(f).and_then(Value::as_str).filter(|s| !s.is_empty());
    match (text("reason"), text("message")) {
        (Some(reason), Some(message)) => format!(": {reason}: {message}"),
        (Some(text), None) | (None, Some(text)) => format!(": {text}"),
        (None, None) => String::new(),
    }
}

fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
}

fn all_true(object: &Value, types: &[&str]) -> Readiness {
    for type_ in types {
        let Some(condition) = condition(object, type_) else {
            return Readiness::NotReady(format!("condition {type_} is not there yet"));
        };
        if !is_true(condition) {
            return Readiness::NotReady(format!("condition {type_} is not true{}", message(condition)));
        }
        let seen = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
        if seen > 0 && seen != generation(object) {
            return Readiness::NotReady(format!("condition {type_} is about an earlier generation"));
        }
    }
    Readiness::Ready
}

/// Something to wait for if the controller of a workload has not seen its newest generation.
fn observed(object: &Value) -> Option<Readiness> {
    let seen = object.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    (seen != generation(object))
        .then(|| Readiness::NotReady("its controller has not seen the newest generation".into()))
}

fn counts(object: &Value, fields: &[&str]) -> Readiness {
    let count = |f: &str| object.pointer(&format!("/status/{f}")).and_then(Value::as_i64).unwrap_or_default();
    let Some((first, rest)) = fields.split_first() else { return Readiness::Ready };
    match rest.iter().find(|f| count(f) != count(first)) {
        Some(f) => Readiness::NotReady(format!("{f} is {} of {}", count(f), count(first))),
        None => Readiness::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(conditions: Value) -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "status": {"conditions": conditions}})
    }

    #[test]
    fn jobs() {
        assert!(matches!(readiness(&job(json!([]))), Readiness::NotReady(_)));
        assert_eq!(readiness(&job(json!([{"type": "Complete", "status": "True"}]))), Readiness::Ready);
        let failed = job(
            json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "exit code 3"}]),
        );
        assert_eq!(
            readiness(&failed),
            Readiness::Failed("job has failed: BackoffLimitExceeded: exit code 3".into())
        );
    }

    #[test]
    fn deployments_need_their_newest_generation_and_all_replicas() {
        let deployment = |observed: i64, available: i64| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "generation": 2},
                "status": {"observedGeneration": observed, "replicas": 3, "availableReplicas": available, "readyReplicas": 3,
                    "updatedReplicas": 3, "conditions": [{"type": "Available", "status": "True"}]}})
        };
        assert_eq!(readiness(&deployment(2, 3)), Readiness::Ready);
        assert!(matches!(readiness(&deployment(1, 3)), Readiness::NotReady(_)));
        assert_eq!(readiness(&deployment(2, 1)), Readiness::NotReady("availableReplicas is 1 of 3".into()));
    }

    #[test]
    fn unknown_kinds_and_instances() {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}});
        assert_eq!(readiness(&object), Readiness::Ready);
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "name": "a", "uid": "u"}]);
        assert!(matches!(readiness(&object), Readiness::NotReady(_)));
    }
}
