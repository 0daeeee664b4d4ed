//! What a server does with its store before it answers.

use crate::kinds::definition;
use crate::rest::{ListOptions, WriteOptions};
use crate::{Api, ApiError};

impl Api {
    /// Reads the definitions in the store, and makes the namespaces that are always there.
    pub async fn load(&self) -> Result<(), ApiError> {
        let definitions = self.resource(definition::GROUP, "v1", definition::PLURAL)?;
        for object in self.list(&definitions, "", &ListOptions::default()).await?.objects()? {
            self.registry.install(object.value(), object.revision());
        }
        let namespaces = self.resource("", "v1", "namespaces")?;
        for name in ["default", "kube-system"] {
            let body = serde_json::json!({"metadata": {"name": name}});
            let options = WriteOptions::system("controller");
            match self.create(&namespaces, "", body, &options).await {
                Ok(_) | Err(ApiError::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
