//! Plans against a fake cluster, and putting them into effect.

use horchestra_core::k8s_openapi::api::batch::v1::Job;
use horchestra_core::owner::{ANNOTATION_NAMESPACE, ANNOTATION_RELEASE};
use horchestra_core::plan::{PlanOptions, Verb, World, plan};
use horchestra_core::{
    GroupVersionKind, Kind, Object, ObjectRef, Ownership, Plan, ReleaseId, Resource, Result,
};
use serde_json::{Value, json};

use super::{Evaluation, FakeCluster};

/// The value of the managed-by label of what a fake cluster creates.
const MANAGED_BY: &str = "horchestra";

/// A fake cluster as the plan of one release sees it.
struct FakeWorld<'a> {
    cluster: &'a FakeCluster,
    release: &'a ReleaseId,
}

impl World for FakeWorld<'_> {
    fn kind(&self, gvk: &GroupVersionKind) -> Option<Kind> {
        self.cluster.kind(gvk)
    }

    fn live(&self, _: &Kind, object: &ObjectRef) -> Option<Object> {
        self.cluster.objects.get(object).cloned()
    }

    fn owned(&self) -> Vec<(Kind, Object)> {
        let ours = self.cluster.objects().filter(|o| o.release() == Some(self.release));
        ours.filter_map(|o| Some((self.cluster.kind(&o.gvk())?, o.clone()))).collect()
    }
}

impl FakeCluster {
    /// What would be done in this cluster for a desired state.
    pub fn plan(&self, evaluation: &Evaluation) -> Result<Plan> {
        let ownership = Ownership::of(&evaluation.instance, MANAGED_BY)?;
        let world = FakeWorld { cluster: self, release: &ownership.release };
        let cross_namespace = evaluation.instance.namespace().is_empty();
        let options = PlanOptions { cross_namespace, ..PlanOptions::default() };
        plan(&evaluation.desired, &ownership, &world, &options)
    }

    /// Does what is planned: objects are created, replaced (their status stays) and removed. Returns
    /// what was done.
    pub fn takeoff(&mut self, evaluation: &Evaluation) -> Result<Plan> {
        let plan = self.plan(evaluation)?;
        for action in plan.writes() {
            let before = self.objects.get(&action.object).map(Object::to_value);
            match &action.verb {
                Verb::Create { manifest } | Verb::Patch { manifest, .. } => {
                    let mut value = manifest.value().clone();
                    if let Some(status) = before.as_ref().and_then(|b| b.get("status")) {
                        value["status"] = status.clone();
                    }
                    self.put_value(value)?;
                }
                Verb::Delete { .. } => {
                    self.objects.remove(&action.object);
                }
                Verb::Orphan { .. } => {
                    let Some(mut value) = before else { continue };
                    if let Some(map) =
                        value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
                    {
                        map.remove(ANNOTATION_RELEASE);
                        map.remove(ANNOTATION_NAMESPACE);
                    }
                    self.put_value(value)?;
                }
                Verb::Keep => {}
            }
        }
        Ok(plan)
    }

    /// Sets the status of an object, as its controller would.
    ///
    /// # Panics
    /// If there is no such object.
    #[track_caller]
    pub fn set_status<T: Resource>(&mut self, name: &str, status: Value) {
        let object = self.get::<T>(name);
        assert!(object.is_some(), "there is no {} {name}", T::kind(&()));
        if let Some(mut value) = object.and_then(|o| Object::from_resource(&o).ok()).map(|o| o.to_value()) {
            value["status"] = status;
            let _ = self.put_value(value);
        }
    }

    /// Lets a Job succeed.
    ///
    /// # Panics
    /// If there is no such Job.
    #[track_caller]
    pub fn complete_job(&mut self, name: &str) {
        self.set_status::<Job>(
            name,
            json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}),
        );
    }

    /// Lets a Job fail for good.
    ///
    /// # Panics
    /// If there is no such Job.
    #[track_caller]
    pub fn fail_job(&mut self, name: &str, reason: &str, message: &str) {
        let failed = json!({"type": "Failed", "status": "True", "reason": reason, "message": message});
        self.set_status::<Job>(name, json!({"failed": 1, "conditions": [failed]}));
    }
}
