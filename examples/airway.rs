//! The Airway that binds a kind to its flight, from the type itself.

use horchestra_flight::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// An Airway for a kind whose flight is in the file `module`, and may read what `matchers` say
/// besides its own objects.
pub(crate) fn airway(crd: &CustomResourceDefinition, module: &str, matchers: &[&str]) -> Value {
    let mut airway = json!({
        "apiVersion": "yoke.cd/v1alpha1",
        "kind": "Airway",
        "metadata": {"name": crd.metadata.name},
        "spec": {
            "wasmUrls": {"flight": module},
            "mode": "dynamic",
            "clusterAccess": true,
            "template": crd.spec,
        },
    });
    if !matchers.is_empty() {
        airway["spec"]["resourceAccessMatchers"] = json!(matchers);
    }
    airway
}

/// Airways as the text of a manifest.
pub(crate) fn manifest(command: &str, airways: &[Value]) -> String {
    let mut text = format!("# Made by `{command}`; edit the types instead.\n");
    for (at, airway) in airways.iter().enumerate() {
        if at > 0 {
            text += "---\n";
        }
        text += &serde_saphyr::to_string(airway).expect("JSON is YAML");
    }
    text
}
