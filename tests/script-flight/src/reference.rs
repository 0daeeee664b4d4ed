//! Looking things up.

use std::future::Future;
use std::pin::Pin;

use horchestra_flight::{Cluster, Error, Kind, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What stands for something of the cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reference {
    kind: String,
    /// The cluster's view decides about the namespace if there is none.
    #[serde(default)]
    namespace: Option<String>,
    name: String,
    /// Where in it, as a JSON pointer.
    at: String,
    /// What it is where there is nothing.
    #[serde(default)]
    default: Value,
    /// Whether text is read as a number.
    #[serde(default)]
    number: bool,
    /// Whether a number is written as text.
    #[serde(default)]
    text: bool,
}

/// The same with everything looked up.
pub(crate) fn resolve<'a>(
    value: &'a Value,
    cluster: &'a Cluster,
) -> Pin<Box<dyn Future<Output = Result<Value>> + Send + 'a>> {
    Box::pin(async move {
        Ok(match value {
            Value::Object(map) if map.contains_key("$ref") => look_up(&value["$ref"], cluster).await?,
            Value::Object(map) => {
                let mut out = Map::new();
                for (key, value) in map {
                    out.insert(key.clone(), resolve(value, cluster).await?);
                }
                Value::Object(out)
            }
            Value::Array(list) => {
                let mut out = Vec::new();
                for value in list {
                    out.push(resolve(value, cluster).await?);
                }
                Value::Array(out)
            }
            other => other.clone(),
        })
    })
}

async fn look_up(value: &Value, cluster: &Cluster) -> Result<Value> {
    let reference = Reference::deserialize(value)?;
    let kind = match reference.kind.as_str() {
        "Secret" => Kind::of::<Secret>(),
        "ConfigMap" => Kind::of::<ConfigMap>(),
        "Deployment" => Kind::of::<Deployment>(),
        other => return Err(Error::terminal(format!("$ref.kind: {other:?} is none of this script's"))),
    };
    let view = match &reference.namespace {
        Some(namespace) => cluster.namespace(namespace.as_str()),
        None => cluster.clone(),
    };
    let found = view.get_object(&kind, &reference.name).await?;
    let found = found.and_then(|object| object.to_value().pointer(&reference.at).cloned());
    let found = match found {
        Some(encoded) if reference.kind == "Secret" => {
            let bytes: ByteString = serde_json::from_value(encoded)?;
            Value::from(String::from_utf8_lossy(&bytes.0).into_owned())
        }
        Some(value) => value,
        None => reference.default,
    };
    Ok(match found {
        Value::String(text) if reference.number => Value::from(text.parse::<i64>().map_err(Error::terminal)?),
        Value::Number(number) if reference.text => Value::from(number.to_string()),
        other => other,
    })
}
