//! From a pod template to the spec of an Application.

use serde_json::{Map, Value, json};

/// A field that an Application cannot be told, or a value that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// From `spec` on.
    pub(super) path: String,
    /// Why, and what to do.
    pub(super) why: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

fn refused(path: &str, why: &str) -> Refused {
    Refused { path: path.to_owned(), why: why.to_owned() }
}

const UNSUPPORTED: &str = "is not supported on plain Linux nodes; leave it out";

type Result<T> = std::result::Result<T, Refused>;

/// Fields of a pod's spec that say nothing beyond what a node does anyway, with the values that say so.
fn is_default(field: &str, value: &Value) -> bool {
    match field {
        "dnsPolicy" => value == "ClusterFirst",
        "schedulerName" => value == "default-scheduler",
        "securityContext" => value.as_object().is_some_and(Map::is_empty),
        "enableServiceLinks" | "hostNetwork" | "automountServiceAccountToken" => value.is_boolean(),
        "imagePullPolicy" | "terminationMessagePath" | "terminationMessagePolicy" => true,
        _ => value.is_null(),
    }
}

/// The spec of the Application that runs this template (`spec.template` of a workload).
pub(super) fn application(template: &Value) -> Result<Map<String, Value>> {
    let empty = Map::new();
    let pod = template.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let mut spec = Map::new();
    let mut container = None;
    let mut volumes: &[Value] = &[];
    for (field, value) in pod {
        let path = format!("spec.template.spec.{field}");
        match field.as_str() {
            "containers" => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let [one] = list else {
                    return Err(refused(
                        &path,
                        "must have exactly one container; an Application is one program",
                    ));
                };
                container = one.as_object();
            }
            "volumes" => volumes = value.as_array().map(Vec::as_slice).unwrap_or_default(),
            "restartPolicy" => drop(spec.insert("restartPolicy".into(), value.clone())),
            "terminationGracePeriodSeconds" | "nodeName" | "nodeSelector" | "tolerations" | "affinity" => {
                spec.insert(field.clone(), value.clone());
            }
            _ if is_default(field, value) => {}
            "initContainers" if value.as_array().is_some_and(Vec::is_empty) => {}
            _ => return Err(refused(&path, UNSUPPORTED)),
        }
    }
    let Some(container) = container else {
        return Err(refused("spec.template.spec.containers", "is missing"));
    };
    fill(&mut spec, container, volumes)?;
    Ok(spec)
}

fn fill(spec: &mut Map<String, Value>, container: &Map<String, Value>, volumes: &[Value]) -> Result<()> {
    for (field, value) in container {
        let path = format!("spec.template.spec.containers[0].{field}");
        match field.as_str() {
            "name" => {}
            "image" | "command" | "args" | "workingDir" | "livenessProbe" | "readinessProbe"
            | "startupProbe" => {
                spec.insert(field.clone(), value.clone());
            }
            "env" => environment(spec, &path, value)?,
            "envFrom" => drop(spec.insert("envFrom".into(), value.clone())),
            "ports" => ports(spec, &path, value)?,
            "resources" => resources(spec, &path, value)?,
            "securityContext" => security(spec, &path, value)?,
            "volumeMounts" => mounts(spec, &path, value, volumes)?,
            _ if is_default(field, value) => {}
            _ => return Err(refused(&path, UNSUPPORTED)),
        }
    }
    Ok(())
}

fn items(value: &Value) -> impl Iterator<Item = (usize, &Map<String, Value>)> {
    value.as_array().into_iter().flatten().enumerate().filter_map(|(i, v)| Some((i, v.as_object()?)))
}

fn text<'v>(map: &'v Map<String, Value>, field: &str) -> &'v str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn environment(spec: &mut Map<String, Value>, path: &str, value: &Value) -> Result<()> {
    let (mut plain, mut secret) = (Map::new(), Map::new());
    for (i, var) in items(value) {
        let name = text(var, "name").to_owned();
        match var.get("valueFrom") {
            None => drop(plain.insert(name, text(var, "value").into())),
            Some(from) => match from.get("secretKeyRef") {
                Some(key) => drop(secret.insert(name, key.clone())),
                None => {
                    return Err(refused(
                        &format!("{path}[{i}].valueFrom"),
                        "only secretKeyRef is supported on plain Linux nodes",
                    ));
                }
            },
        }
    }
    for (field, map) in [("env", plain), ("secretEnv", secret)] {
        if !map.is_empty() {
            spec.insert(field.into(), Value::Object(map));
        }
    }
    Ok(())
}

fn ports(spec: &mut Map<String, Value>, path: &str, value: &Value) -> Result<()> {
    let mut list = Vec::new();
    for (i, port) in items(value) {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        for (field, value) in port {
            let same = field == "hostPort" && *value == number;
            if !matches!(field.as_str(), "name" | "containerPort" | "protocol") && !same {
                return Err(refused(&format!("{path}[{i}].{field}"), UNSUPPORTED));
            }
        }
        let mut out = json!({"port": number});
        for field in ["name", "protocol"] {
            if let Some(value) = port.get(field) {
                out[field] = value.clone();
            }
        }
        list.push(out);
    }
    spec.insert("ports".into(), Value::Array(list));
    Ok(())
}

fn resources(spec: &mut Map<String, Value>, path: &str, value: &Value) -> Result<()> {
    for (of, amounts) in value.as_object().into_iter().flatten() {
        if !matches!(of.as_str(), "requests" | "limits") {
            return Err(refused(&format!("{path}.{of}"), UNSUPPORTED));
        }
        let names = amounts.as_object().into_iter().flatten().map(|(name, _)| name);
        if let Some(name) = names.into_iter().find(|n| !matches!(n.as_str(), "cpu" | "memory")) {
            return Err(refused(
                &format!("{path}.{of}.{name}"),
                "only cpu and memory are supported on plain Linux nodes",
            ));
        }
    }
    if value.as_object().is_some_and(|v| !v.is_empty()) {
        spec.insert("resources".into(), value.clone());
    }
    Ok(())
}

fn security(spec: &mut Map<String, Value>, path: &str, value: &Value) -> Result<()> {
    const KNOWN: [&str; 5] =
        ["runAsUser", "runAsGroup", "runAsNonRoot", "allowPrivilegeEscalation", "capabilities"];
    for (field, inner) in value.as_object().into_iter().flatten() {
        if !KNOWN.contains(&field.as_str()) {
            return Err(refused(&format!("{path}.{field}"), UNSUPPORTED));
        }
        if field == "capabilities"
            && inner.get("add").and_then(Value::as_array).is_some_and(|a| !a.is_empty())
        {
            return Err(refused(
                &format!("{path}.capabilities.add"),
                "no capability can be added on plain Linux nodes",
            ));
        }
    }
    spec.insert("securityContext".into(), value.clone());
    Ok(())
}

fn mounts(spec: &mut Map<String, Value>, path: &str, value: &Value, volumes: &[Value]) -> Result<()> {
    let mut list = Vec::new();
    for (i, mount) in items(value) {
        let path = format!("{path}[{i}]");
        let name = text(mount, "name");
        let found =
            volumes.iter().enumerate().find(|(_, v)| v.get("name").and_then(Value::as_str) == Some(name));
        let Some((at, volume)) = found else {
            return Err(refused(
                &format!("{path}.name"),
                &format!("there is no volume {name:?} in the template"),
            ));
        };
        let mut out = Map::new();
        out.insert("path".into(), text(mount, "mountPath").into());
        for (field, value) in mount {
            match field.as_str() {
                "name" | "mountPath" => {}
                "readOnly" | "subPath" => drop(out.insert(field.clone(), value.clone())),
                "recursiveReadOnly" if value == "Disabled" => {}
                _ => return Err(refused(&format!("{path}.{field}"), UNSUPPORTED)),
            }
        }
        let (field, source) = volume_source(&format!("spec.template.spec.volumes[{at}]"), volume)?;
        out.insert(field.into(), source);
        list.push(Value::Object(out));
    }
    spec.insert("volumeMounts".into(), Value::Array(list));
    Ok(())
}

/// What an Application mounts for a volume of a pod.
fn volume_source(path: &str, volume: &Value) -> Result<(&'static str, Value)> {
    let source = volume.as_object().into_iter().flatten().find(|(field, _)| *field != "name");
    let Some((kind, source)) = source else {
        return Err(refused(path, "has no source; name a secret, a configMap or an emptyDir"));
    };
    let field = |name: &str| source.get(name).cloned();
    if field("items").is_some_and(|i| i.as_array().is_some_and(|i| !i.is_empty())) {
        return Err(refused(&format!("{path}.{kind}.items"), UNSUPPORTED));
    }
    let named = |name: &str| {
        let mut out = json!({"name": field(name)});
        if let Some(optional) = field("optional") {
            out["optional"] = optional;
        }
        out
    };
    match kind.as_str() {
        "secret" => Ok(("secret", named("secretName"))),
        "configMap" => Ok(("configMap", named("name"))),
        "emptyDir" => {
            Ok(("tmpfs", field("sizeLimit").map_or_else(|| json!({}), |size| json!({"size": size}))))
        }
        _ => Err(refused(&format!("{path}.{kind}"), UNSUPPORTED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pod: Value) -> Result<Value> {
        application(&json!({"spec": pod})).map(Value::Object)
    }

    #[test]
    fn what_a_server_has_defaulted_changes_nothing() {
        let spec = of(json!({
            "restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "busybox", "command": ["sh"], "env": [{"name": "A", "value": "1"}, {"name": "B"}],
                "resources": {}, "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]}));
        assert_eq!(
            spec.unwrap(),
            json!({"image": "busybox", "command": ["sh"], "env": {"A": "1", "B": ""}, "restartPolicy": "Never", "terminationGracePeriodSeconds": 30})
        );
    }

    #[test]
    fn secrets_and_empty_directories_become_mounts() {
        let spec = of(json!({
            "volumes": [{"name": "s", "secret": {"secretName": "db", "defaultMode": 420}}, {"name": "t", "emptyDir": {"sizeLimit": "1Mi"}}],
            "containers": [{"name": "c", "image": "i", "volumeMounts": [
                {"name": "s", "mountPath": "/run/db", "readOnly": true}, {"name": "t", "mountPath": "/tmp"}]}]}));
        assert_eq!(
            spec.unwrap()["volumeMounts"],
            json!([{"path": "/run/db", "readOnly": true, "secret": {"name": "db"}}, {"path": "/tmp", "tmpfs": {"size": "1Mi"}}])
        );
    }

    #[test]
    fn what_cannot_be_told_is_refused_by_its_path() {
        let container = json!({"name": "c", "image": "i"});
        for (pod, path) in [
            (json!({"containers": [container, container]}), "spec.template.spec.containers"),
            (
                json!({"containers": [container], "initContainers": [container]}),
                "spec.template.spec.initContainers",
            ),
            (
                json!({"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}]}),
                "spec.template.spec.containers[0].env[0].valueFrom",
            ),
            (
                json!({"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": true}}]}),
                "spec.template.spec.containers[0].securityContext.privileged",
            ),
            (
                json!({"containers": [{"name": "c", "image": "i", "lifecycle": {}}]}),
                "spec.template.spec.containers[0].lifecycle",
            ),
            (
                json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                "spec.template.spec.volumes[0].hostPath",
            ),
            (json!({"hostPID": true, "containers": [container]}), "spec.template.spec.hostPID"),
        ] {
            assert_eq!(of(pod).unwrap_err().path, path);
        }
    }
}
