//! A target that only has things, and on which nothing happens.

use async_trait::async_trait;
use futures::StreamExt;
use horchestra::runtime::{
    ApplyOptions, DeleteOptions, Listing, Note, Revision, Scope, Target, TargetError, WatchStream,
};
use horchestra::{GroupVersionKind, Kind, Manifest, Object};
use serde_json::{Map, Value};

use crate::thing::{Thing, stored};

/// So many things.
pub struct Things(pub usize);

fn refused() -> TargetError {
    TargetError::Invalid("nothing is to be written".into())
}

#[async_trait]
impl Target for Things {
    async fn resolve(&self, kind: &GroupVersionKind) -> Result<Option<Kind>, TargetError> {
        let thing = Kind::of::<Thing>();
        Ok((*kind == thing.gvk).then_some(thing))
    }

    async fn get(&self, _: &Kind, _: &str, _: &str) -> Result<Option<Object>, TargetError> {
        Ok(None)
    }

    async fn list(&self, _: &Kind, _: &Scope) -> Result<Listing, TargetError> {
        let object =
            |index| Object::from_value(&stored(index)).map_err(|e| TargetError::Invalid(e.to_string()));
        let objects = (0..self.0).map(object).collect::<Result<_, _>>()?;
        Ok(Listing { objects, revision: Revision(self.0.to_string()) })
    }

    async fn watch(&self, _: &Kind, _: &Scope, _: &Revision) -> Result<WatchStream, TargetError> {
        Ok(futures::stream::pending().boxed())
    }

    async fn apply(&self, _: &Kind, _: &Manifest, _: &ApplyOptions) -> Result<Object, TargetError> {
        Err(refused())
    }

    async fn set_status(
        &self,
        _: &Object,
        _: &Kind,
        _: Map<String, Value>,
        _: &str,
    ) -> Result<Object, TargetError> {
        Err(refused())
    }

    async fn delete(&self, _: &Kind, _: &str, _: &str, _: &DeleteOptions) -> Result<(), TargetError> {
        Err(refused())
    }

    async fn note(&self, _: &Object, _: Note) -> Result<(), TargetError> {
        Ok(())
    }
}
