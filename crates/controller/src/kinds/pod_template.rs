//! Defaults and rules of a pod template, which Jobs and Deployments share.
//!
//! The defaults are those of Kubernetes (`pkg/apis/core/v1/defaults.go`), so that an object reads the same here and there.

use horchestra_core::field_error::FieldError;
use serde_json::{Map, Value, json};

use super::fields::{fill, get, items_mut, list, object_at, text};
use crate::name::NameRule;

const FILE_MODE: i64 = 0o644;

/// Fills in the template at `spec.template`.
pub(crate) fn default(object: &mut Value) {
    let Some(pod) = get(object, &["spec", "template", "spec"])
        .is_some()
        .then_some(())
        .and_then(|()| object_at(object, &["spec", "template", "spec"]))
    else {
        return;
    };
    fill(pod, "dnsPolicy", "ClusterFirst");
    fill(pod, "restartPolicy", "Always");
    fill(pod, "schedulerName", "default-scheduler");
    fill(pod, "terminationGracePeriodSeconds", 30);
    fill(pod, "securityContext", json!({}));
    // The deprecated alias and its successor mirror each other.
    if let Some(account) = pod.get("serviceAccountName").or_else(|| pod.get("serviceAccount")).cloned() {
        fill(pod, "serviceAccountName", account.clone());
        fill(pod, "serviceAccount", account);
    }
    for containers in ["containers", "initContainers"] {
        items_mut(pod, containers).for_each(container);
    }
    items_mut(pod, "volumes").for_each(volume);
}

fn container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    for port in items_mut(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if let Some(field) =
            variable.get_mut("valueFrom").and_then(|v| v.get_mut("fieldRef")).and_then(Value::as_object_mut)
        {
            fill(field, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).and_then(Value::as_object_mut) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                fill(probe, field, value);
            }
            http_get(probe);
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
        lifecycle.values_mut().filter_map(Value::as_object_mut).for_each(http_get);
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
}

fn volume(volume: &mut Map<String, Value>) {
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            fill(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        path.entry("type").or_insert_with(|| json!(""));
    }
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// True when an image reference has the tag `latest`, or no tag and no digest.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// The least that must hold for a template at `spec.template`.
pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let at = "spec.template.spec";
    let containers = list(object, &["spec", "template", "spec", "containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (field, required) in [("initContainers", true), ("containers", true)] {
        for (index, container) in list(object, &["spec", "template", "spec", field]).iter().enumerate() {
            let path = format!("{at}.{field}[{index}]");
            let name = text(container, &["name"]);
            if name.is_empty() {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            } else if let Some(why) = NameRule::Label.check(name) {
                errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), why));
            } else if !seen.insert(name.to_owned()) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name)));
            }
            if required && text(container, &["image"]).is_empty() {
                errors.push(FieldError::required(format!("{path}.image"), ""));
            }
        }
    }
}

/// `name,name` and `image,image` of the containers, for Tables.
pub(crate) fn container_cells(object: &Value, field: &str) -> Value {
    let cells: Vec<&str> =
        list(object, &["spec", "template", "spec", "containers"]).iter().map(|c| text(c, &[field])).collect();
    json!(cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_is_pulled_always() {
        for (image, latest) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1", false),
            ("localhost:5000/a/b", true),
            ("localhost:5000/a/b:2", false),
            ("busybox@sha256:00", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
