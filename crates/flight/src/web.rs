//! A flight in a page or in Node: the same function, with JSON in and out.
//!
//! With the feature `web`, [`main!`](crate::main) exports `evaluate(resource, objects)` by
//! wasm-bindgen in place of a program: there is no host, so what the flight reads is given to it.

use horchestra_core::{DynReconciler, Result};

use crate::program::Program;
use crate::testing::FakeCluster;

/// Evaluates once. `resource` is one object and `objects` what there is beside it: objects, lists
/// or `kind: List`, as JSON or YAML; empty for nothing. The answer is the desired state as JSON, in
/// the form that `horchestra flight run` prints.
///
/// # Errors
/// Those of the function, and input that is not understood.
pub fn evaluate(reconcilers: &[&dyn DynReconciler], resource: &str, objects: &str) -> Result<String> {
    let cluster = match objects.trim() {
        "" => FakeCluster::new(),
        text => FakeCluster::from_text(text.as_bytes())?,
    };
    let (_, desired) = Program(reconcilers).desired(resource.as_bytes(), |ns| cluster.view(&ns))?;
    Ok(serde_json::to_string(&desired)?)
}

#[cfg(test)]
mod tests {
    use horchestra_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use horchestra_core::{Cluster, DesiredState, Result, reconciler};
    use serde_json::{Value, json};

    use super::*;

    async fn copier(_: &ConfigMap, cluster: &Cluster) -> Result<DesiredState> {
        Ok(match cluster.get::<Secret>("wanted").await? {
            Some(_) => DesiredState::new().with_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "copy"}, "data": {"found": "yes"}})),
            None => DesiredState::new().waiting_for("Secret wanted"),
        })
    }

    const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}}"#;

    #[test]
    fn what_is_given_is_what_is_read() {
        let copier = reconciler(copier);
        let secret = |namespace: &str| json!([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wanted", "namespace": namespace}}]);
        let answer = |objects: &str| -> Value {
            serde_json::from_str(&evaluate(&[&copier], MAP, objects).unwrap()).unwrap()
        };
        assert!(answer("").to_string().contains("Secret wanted"));
        assert!(answer(&secret("elsewhere").to_string()).to_string().contains("Secret wanted"));
        assert!(answer(&secret("team").to_string()).to_string().contains("copy"));
    }

    #[test]
    fn errors_are_text() {
        let copier = reconciler(copier);
        assert!(evaluate(&[&copier], "", "").unwrap_err().to_string().contains("stdin"));
        assert!(evaluate(&[&copier], MAP, "[{}]").unwrap_err().to_string().contains("apiVersion"));
        let other = MAP.replace("ConfigMap", "Secret");
        assert!(
            evaluate(&[&copier], &other, "")
                .unwrap_err()
                .to_string()
                .contains("this flight is for ConfigMap")
        );
    }
}
