//! The kinds that the server has by itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::columns::{Column, age};
use super::fields::{get, list, number, text};
use super::kind::{Kind, KindVersion, Origin, Scale, SchemaSource, Scope};
use super::strategy::{Plain, Strategy};
use super::{config, definition, deployment, job, namespace};

/// The first column of most kinds.
pub(crate) fn name_column() -> Column {
    let mut column = Column::code("Name", "string", 0, |o, _| json!(text(o, &["metadata", "name"])));
    column.format = "name".to_owned();
    column
}

/// `spec.selector` as text.
pub(crate) fn selector_cell(object: &Value) -> Value {
    let labels = get(object, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in list(object, &["spec", "selector", "matchExpressions"]) {
        let values: Vec<&str> = list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        let key = text(expression, &["key"]);
        parts.push(match text(expression, &["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    json!(if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") })
}

fn names(plural: &str, kind: &str, short: &[&str]) -> Kind {
    Kind {
        group: String::new(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: short.iter().map(|s| (*s).to_owned()).collect(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: Vec::new(),
        origin: Origin::BuiltIn,
        generation: false,
        strategy: Arc::new(Plain),
    }
}

fn v1(definition: &'static str, status: bool, columns: Vec<Column>, selectable: &[&str]) -> Vec<KindVersion> {
    vec![KindVersion {
        name: "v1".to_owned(),
        served: true,
        stored: true,
        deprecation: None,
        schema: SchemaSource::definition(definition),
        status,
        scale: None,
        columns,
        selectable: selectable.iter().map(|s| (*s).to_owned()).collect(),
    }]
}

fn strategy(strategy: impl Strategy + 'static) -> Arc<dyn Strategy> {
    Arc::new(strategy)
}

/// All of them, each with one version.
#[must_use]
pub(crate) fn kinds() -> Vec<Kind> {
    let mut out = core();
    out.push(Kind {
        group: "batch".to_owned(),
        categories: vec!["all".to_owned()],
        generation: true,
        strategy: strategy(job::Job),
        versions: v1("io.k8s.api.batch.v1.Job", true, job::columns(), &["status.successful"]),
        ..names("jobs", "Job", &[])
    });
    let mut deployments = Kind {
        group: "apps".to_owned(),
        categories: vec!["all".to_owned()],
        generation: true,
        strategy: strategy(deployment::Deployment),
        versions: v1("io.k8s.api.apps.v1.Deployment", true, deployment::columns(), &[]),
        ..names("deployments", "Deployment", &["deploy"])
    };
    for version in &mut deployments.versions {
        version.scale = Some(Scale {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: None,
        });
    }
    out.push(deployments);
    out.push(Kind {
        group: "coordination.k8s.io".to_owned(),
        versions: v1("io.k8s.api.coordination.v1.Lease", false, lease_columns(), &[]),
        ..names("leases", "Lease", &[])
    });
    out.push(Kind {
        group: definition::GROUP.to_owned(),
        categories: vec!["api-extensions".to_owned()],
        scope: Scope::Cluster,
        generation: true,
        strategy: strategy(definition::Definition),
        versions: v1(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            true,
            vec![
                name_column(),
                Column::code("Created At", "date", 0, |o, _| {
                    json!(text(o, &["metadata", "creationTimestamp"]))
                }),
            ],
            &[],
        ),
        ..names(definition::PLURAL, definition::KIND, &["crd", "crds"])
    });
    out
}

fn entries(object: &Value, field: &str) -> usize {
    get(object, &[field]).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn core() -> Vec<Kind> {
    vec![
        Kind {
            scope: Scope::Cluster,
            strategy: strategy(namespace::Namespace),
            versions: v1(
                "io.k8s.api.core.v1.Namespace",
                true,
                vec![
                    name_column(),
                    Column::code("Status", "string", 0, |o, _| json!(text(o, &["status", "phase"]))),
                    Column::age(),
                ],
                &["status.phase"],
            ),
            ..names("namespaces", "Namespace", &["ns"])
        },
        Kind {
            strategy: strategy(config::Secret),
            versions: v1(
                "io.k8s.api.core.v1.Secret",
                false,
                vec![
                    name_column(),
                    Column::code("Type", "string", 0, |o, _| json!(text(o, &["type"]))),
                    Column::code("Data", "string", 0, |o, _| json!(entries(o, "data"))),
                    Column::age(),
                ],
                &["type"],
            ),
            ..names("secrets", "Secret", &[])
        },
        Kind {
            strategy: strategy(config::ConfigMap),
            versions: v1(
                "io.k8s.api.core.v1.ConfigMap",
                false,
                vec![
                    name_column(),
                    Column::code("Data", "string", 0, |o, _| {
                        json!(entries(o, "data") + entries(o, "binaryData"))
                    }),
                    Column::age(),
                ],
                &[],
            ),
            ..names("configmaps", "ConfigMap", &["cm"])
        },
        Kind {
            versions: v1("io.k8s.api.core.v1.Event", false, event_columns(), EVENT_FIELDS),
            ..names("events", "Event", &["ev"])
        },
        Kind {
            scope: Scope::Cluster,
            versions: v1("io.k8s.api.core.v1.Node", true, node_columns(), &["spec.unschedulable"]),
            ..names("nodes", "Node", &["no"])
        },
    ]
}

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

fn event_columns() -> Vec<Column> {
    fn first_seen(o: &Value) -> &str {
        let first = text(o, &["firstTimestamp"]);
        if first.is_empty() { text(o, &["eventTime"]) } else { first }
    }
    fn last_seen(o: &Value) -> &str {
        let series = text(o, &["series", "lastObservedTime"]);
        let last = text(o, &["lastTimestamp"]);
        [series, last, first_seen(o)].into_iter().find(|t| !t.is_empty()).unwrap_or_default()
    }
    vec![
        Column::code("Last Seen", "string", 0, |o, now| json!(age(last_seen(o), now))),
        Column::code("Type", "string", 0, |o, _| json!(text(o, &["type"]))),
        Column::code("Reason", "string", 0, |o, _| json!(text(o, &["reason"]))),
        Column::code("Object", "string", 0, |o, _| {
            let kind = text(o, &["involvedObject", "kind"]).to_lowercase();
            let name = text(o, &["involvedObject", "name"]);
            json!(if name.is_empty() { kind } else { format!("{kind}/{name}") })
        }),
        Column::code("Subobject", "string", 1, |o, _| json!(text(o, &["involvedObject", "fieldPath"]))),
        Column::code("Source", "string", 1, |o, _| {
            let component = text(o, &["source", "component"]);
            let host = text(o, &["source", "host"]);
            let component = if component.is_empty() { text(o, &["reportingComponent"]) } else { component };
            let host = if host.is_empty() { text(o, &["reportingInstance"]) } else { host };
            json!(if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") })
        }),
        Column::code("Message", "string", 0, |o, _| json!(text(o, &["message"]).trim())),
        Column::code("First Seen", "string", 1, |o, now| json!(age(first_seen(o), now))),
        Column::code("Count", "string", 1, |o, _| {
            let count = number(o, &["series", "count"]).or_else(|| number(o, &["count"])).unwrap_or(1);
            json!(count.max(1))
        }),
        {
            let mut name = name_column();
            name.priority = 1;
            name
        },
    ]
}

fn lease_columns() -> Vec<Column> {
    vec![
        name_column(),
        Column::code("Holder", "string", 0, |o, _| json!(text(o, &["spec", "holderIdentity"]))),
        Column::age(),
    ]
}

fn node_columns() -> Vec<Column> {
    fn ready(o: &Value) -> String {
        let state = list(o, &["status", "conditions"])
            .iter()
            .find(|c| text(c, &["type"]) == "Ready")
            .map_or("Unknown", |c| if text(c, &["status"]) == "True" { "Ready" } else { "NotReady" });
        let cordoned = get(o, &["spec", "unschedulable"]) == Some(&Value::Bool(true));
        if cordoned { format!("{state},SchedulingDisabled") } else { state.to_owned() }
    }
    fn or_none(text: &str, none: &str) -> Value {
        json!(if text.is_empty() { none } else { text })
    }
    fn address<'a>(o: &'a Value, kind: &str) -> &'a str {
        list(o, &["status", "addresses"])
            .iter()
            .find(|a| text(a, &["type"]) == kind)
            .map_or("", |a| text(a, &["address"]))
    }
    fn roles(o: &Value) -> String {
        let labels = get(o, &["metadata", "labels"]).and_then(Value::as_object);
        let roles: Vec<&str> = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
            .collect();
        if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
    }
    vec![
        name_column(),
        Column::code("Status", "string", 0, |o, _| json!(ready(o))),
        Column::code("Roles", "string", 0, |o, _| json!(roles(o))),
        Column::age(),
        Column::code("Version", "string", 0, |o, _| {
            json!(text(o, &["status", "nodeInfo", "kubeletVersion"]))
        }),
        Column::code("Internal-IP", "string", 1, |o, _| or_none(address(o, "InternalIP"), "<none>")),
        Column::code("External-IP", "string", 1, |o, _| or_none(address(o, "ExternalIP"), "<none>")),
        Column::code("OS-Image", "string", 1, |o, _| {
            or_none(text(o, &["status", "nodeInfo", "osImage"]), "<unknown>")
        }),
        Column::code("Kernel-Version", "string", 1, |o, _| {
            or_none(text(o, &["status", "nodeInfo", "kernelVersion"]), "<unknown>")
        }),
        Column::code("Container-Runtime", "string", 1, |o, _| {
            or_none(text(o, &["status", "nodeInfo", "containerRuntimeVersion"]), "<unknown>")
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_schema() {
        for kind in kinds() {
            for version in &kind.versions {
                assert!(version.schema().is_some(), "{kind:?}");
            }
            assert!(kind.storage().is_some(), "{kind:?}");
        }
    }
}
