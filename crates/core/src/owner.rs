//! Who owns an object: the mark that a release leaves on everything it creates.
//!
//! The mark stands on the object itself, so what is owned can always be found by looking at the
//! world, and no list of owned things can get out of step with it. Names are Yoke's.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Error, Object, ObjectRef};

/// The annotation with the name of the release that owns an object.
pub const ANNOTATION_RELEASE: &str = "instance.atc.yoke.cd/release";
/// The annotation with the namespace of that release.
pub const ANNOTATION_NAMESPACE: &str = "instance.atc.yoke.cd/namespace";
/// The annotation with the reference of the resource that the release serves.
pub const ANNOTATION_INSTANCE: &str = "instance.atc.yoke.cd/instanceRef";
/// The annotation with the stage an object was applied in; deletion goes through them in reverse.
pub const ANNOTATION_STAGE: &str = "horchestra.dev/stage";
/// The annotation on an owner that lists the kinds it has ever created.
pub const ANNOTATION_KINDS: &str = "horchestra.dev/kinds";
/// The label that says which program manages an object.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Which release an object belongs to.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleaseId {
    /// The namespace of the release.
    pub namespace: Arc<str>,
    /// The name of the release.
    pub name: Arc<str>,
}

impl ReleaseId {
    /// The release of an instance, named as Yoke's ATC does: `group.Kind[.namespace].name`;
    /// an instance of the cluster has its release in the namespace `default`.
    pub fn of_instance(instance: &ObjectRef) -> Self {
        let mut name = String::new();
        for part in [&*instance.kind.group, &*instance.kind.kind, &*instance.namespace, &*instance.name] {
            if !part.is_empty() {
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(part);
            }
        }
        let namespace =
            if instance.namespace.is_empty() { "default".into() } else { instance.namespace.clone() };
        Self { namespace, name: name.into() }
    }
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Everything a release writes on what it owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Ownership {
    /// The release.
    pub release: ReleaseId,
    /// The resource it serves.
    pub instance: ObjectRef,
    /// The value of [`LABEL_MANAGED_BY`].
    pub managed_by: Arc<str>,
    /// The owner reference to the resource, for the server's garbage collection.
    owner_reference: Value,
}

impl Ownership {
    /// The ownership of what is created on behalf of `instance`.
    pub fn of(instance: &Object, managed_by: &str) -> Result<Self, Error> {
        let reference = instance.reference();
        if instance.uid().is_empty() {
            return Err(Error::invalid(
                &reference,
                "metadata.uid is missing; only an object that a server stored can own others",
            ));
        }
        Ok(Self {
            release: ReleaseId::of_instance(&reference),
            owner_reference: json!({
                "apiVersion": instance.api_version(),
                "kind": &*reference.kind.kind,
                "name": &*reference.name,
                "uid": instance.uid(),
            }),
            instance: reference,
            managed_by: managed_by.into(),
        })
    }

    /// Marks a manifest as owned.
    pub(crate) fn mark(&self, manifest: &mut Value, stage: usize) {
        let Some(meta) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let text = |s: &str| Value::String(s.to_owned());
        if let Some(labels) = meta.entry("labels").or_insert_with(|| json!({})).as_object_mut() {
            labels.insert(LABEL_MANAGED_BY.into(), text(&self.managed_by));
        }
        if let Some(annotations) = meta.entry("annotations").or_insert_with(|| json!({})).as_object_mut() {
            annotations.insert(ANNOTATION_RELEASE.into(), text(&self.release.name));
            annotations.insert(ANNOTATION_NAMESPACE.into(), text(&self.release.namespace));
            annotations.insert(ANNOTATION_INSTANCE.into(), text(&self.instance.to_string()));
            if stage > 0 {
                annotations.insert(ANNOTATION_STAGE.into(), text(&stage.to_string()));
            }
        }
        // A namespaced owner cannot own objects of the cluster or of another namespace: the garbage
        // collector would take such children for orphans and delete them.
        let namespace = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
        let may_own = self.instance.namespace.is_empty() || *namespace == *self.instance.namespace;
        if may_own
            && let Some(owners) = meta.entry("ownerReferences").or_insert_with(|| json!([])).as_array_mut()
        {
            owners.push(self.owner_reference.clone());
        }
    }
}

/// The stage that an owned object was applied in.
pub(crate) fn stage_of(object: &Value) -> usize {
    object
        .pointer("/metadata/annotations")
        .and_then(|a| a.get(ANNOTATION_STAGE))
        .and_then(Value::as_str)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0)
}
