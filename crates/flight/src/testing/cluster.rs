//! A cluster that is a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use horchestra_core::{
    Cluster, DynReconciler, Error, GroupKind, GroupVersionKind, Kind, Object, ObjectRef, ReconcileFn,
    ReleaseId, Resource, Result, reconciler,
};
use serde_json::{Value, json};

use super::evaluation::Evaluation;
use super::kinds;
use super::source::FakeSource;
use crate::contract::{Evaluate, Invocation};
use crate::document::documents;
use crate::host::ClusterHost;
use crate::output;
use crate::program::poll_once;

/// Objects that a reconciler under test sees. Objects of namespaces that name none are in `default`.
#[derive(Debug, Clone, Default)]
pub struct FakeCluster {
    pub(super) objects: BTreeMap<ObjectRef, Object>,
    pub(super) kinds: BTreeMap<GroupKind, Kind>,
    pub(super) now: Option<Arc<str>>,
    version: u64,
}

impl FakeCluster {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// The objects of a text: documents in YAML or JSON, lists of objects, and `kind: List`, as
    /// `kubectl get -o yaml` prints it.
    pub fn from_text(text: &[u8]) -> Result<Self> {
        let mut cluster = Self::new();
        cluster.add_all(documents("cluster", text)?)?;
        Ok(cluster)
    }

    fn add_all(&mut self, values: Vec<Value>) -> Result<()> {
        for mut value in values {
            let is_list = value.get("kind").and_then(Value::as_str).is_none_or(|k| k.ends_with("List"));
            match value.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) if is_list => self.add_all(items)?,
                _ => match value {
                    Value::Array(items) => self.add_all(items)?,
                    object => {
                        self.put_value(object)?;
                    }
                },
            }
        }
        Ok(())
    }

    /// With this object, which replaces one of the same name.
    ///
    /// # Panics
    /// If it has no name.
    #[must_use]
    pub fn with<T: Resource>(mut self, object: &T) -> Self {
        self.put(object);
        self
    }

    /// With the objects of a text, see [`from_text`](Self::from_text).
    ///
    /// # Panics
    /// If the text is not understood.
    #[must_use]
    pub fn with_yaml(mut self, text: &str) -> Self {
        let added = documents("cluster", text.as_bytes()).and_then(|values| self.add_all(values));
        must("with_yaml", added);
        self
    }

    /// With this type served, for types that come neither with Kubernetes nor as a CustomResourceDefinition
    /// in the cluster. Types of objects that were put in are served anyway.
    #[must_use]
    pub fn serving<T: Resource>(mut self) -> Self {
        let kind = Kind::of::<T>();
        self.kinds.insert(kind.group_kind(), kind);
        self
    }

    /// What time it is for [`Cluster::older_than`], as RFC 3339 text. Without it nothing is older than anything.
    #[must_use]
    pub fn at(mut self, now: &str) -> Self {
        self.now = Some(now.into());
        self
    }

    /// Puts an object in, which replaces one of the same name.
    ///
    /// # Panics
    /// If it has no name.
    pub fn put<T: Resource>(&mut self, object: &T) {
        let kind = Kind::of::<T>();
        self.kinds.insert(kind.group_kind(), kind);
        let put = Object::from_resource(object).and_then(|o| self.put_value(o.to_value()));
        must("put", put);
    }

    /// Puts an object in that is a tree, and hands it back as a server would have stored it: in
    /// `default` if it is of a namespace and names none, with a uid and a version.
    pub fn put_value(&mut self, mut value: Value) -> Result<Object> {
        let object = Object::from_value(&value)?;
        if value.pointer("/kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
            self.define(&value);
        }
        let namespaced = self.is_namespaced(&object.gvk());
        self.version += 1;
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            if namespaced {
                meta.entry("namespace").or_insert_with(|| "default".into());
            } else {
                meta.remove("namespace");
            }
            let uid = json!(format!("uid-of-{}", object.name()));
            meta.entry("uid").or_insert(uid);
            meta.insert("resourceVersion".into(), json!(self.version.to_string()));
        }
        let object = Object::from_value(&value)?;
        self.objects.insert(object.reference(), object.clone());
        Ok(object)
    }

    /// Takes an object out.
    pub fn remove<T: Resource>(&mut self, name: &str) {
        let reference = self.reference::<T>(name);
        self.objects.remove(&reference);
    }

    /// The object of this type and name, in `default` if it lives in namespaces.
    pub fn get<T: Resource>(&self, name: &str) -> Option<T> {
        self.objects.get(&self.reference::<T>(name)).and_then(|o| o.parse().ok())
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    fn reference<T: Resource>(&self, name: &str) -> ObjectRef {
        let kind = Kind::of::<T>();
        ObjectRef::new(kind.group_kind(), if kind.namespaced { "default" } else { "" }, name)
    }

    /// Serves what a CustomResourceDefinition defines.
    fn define(&mut self, crd: &Value) {
        let text = |path: &str| crd.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let version = crd.pointer("/spec/versions/0/name").and_then(Value::as_str).unwrap_or_default();
        let kind = Kind {
            gvk: GroupVersionKind::new(text("/spec/group"), version, text("/spec/names/kind")),
            plural: text("/spec/names/plural").into(),
            namespaced: text("/spec/scope") != "Cluster",
        };
        self.kinds.insert(kind.group_kind(), kind);
    }

    /// How a kind is served: as it was told, or as Kubernetes does; none for a kind of another
    /// group of which there is nothing here.
    pub fn kind(&self, gvk: &GroupVersionKind) -> Option<Kind> {
        let group_kind = gvk.group_kind();
        if let Some(kind) = self.kinds.get(&group_kind) {
            return Some(kind.clone());
        }
        let here = self.objects.keys().any(|o| o.kind == group_kind);
        (here || kinds::is_builtin(&gvk.group)).then(|| kinds::guess(gvk, self.is_namespaced(gvk)))
    }

    pub(crate) fn is_namespaced(&self, gvk: &GroupVersionKind) -> bool {
        let kind = gvk.group_kind();
        self.kinds.get(&kind).map_or_else(|| !kinds::of_the_cluster(&kind), |k| k.namespaced)
    }

    /// A view of these objects as they are now.
    pub fn view(&self, namespace: &str) -> Cluster {
        Cluster::new(Arc::new(FakeSource(self.clone())), namespace)
    }

    /// Calls a reconciler function once for a resource. The resource itself need not be in the cluster.
    pub async fn run<T, F>(&self, function: F, resource: &T) -> Result<Evaluation>
    where
        T: Resource,
        F: for<'a> ReconcileFn<'a, T>,
    {
        self.run_reconciler(&reconciler(function), &stored(resource)?).await
    }

    /// As [`run`](Self::run), where there is no async runtime: every read is answered at once.
    pub fn run_blocking<T, F>(&self, function: F, resource: &T) -> Result<Evaluation>
    where
        T: Resource,
        F: for<'a> ReconcileFn<'a, T>,
    {
        poll_once(self.run(function, resource))?
    }

    /// Calls a reconciler once.
    pub async fn run_reconciler(
        &self,
        reconciler: &dyn DynReconciler,
        instance: &Object,
    ) -> Result<Evaluation> {
        let cluster = self.view(&ReleaseId::of_instance(&instance.reference()).namespace);
        let desired = reconciler.reconcile_object(instance, &cluster).await?.checked()?;
        Ok(Evaluation { instance: instance.clone(), desired, reads: cluster.reads(), log: String::new() })
    }

    /// Evaluates a loaded module once for a resource, within the default limits.
    pub fn run_module<T: Resource>(&self, flight: &dyn Evaluate, resource: &T) -> Result<Evaluation> {
        let instance = stored(resource)?;
        let release = ReleaseId::of_instance(&instance.reference());
        let invocation = Invocation::new(&release.name, &release.namespace, instance.json().to_vec());
        let host = Arc::new(self.host(&release.namespace));
        let output = flight.evaluate(&invocation, host.clone()).map_err(Error::terminal)?;
        let desired = output::parse(&output, Some(&instance))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Evaluation { instance, desired, reads: host.reads(), log })
    }

    /// A host that answers a flight's questions from these objects, for a release in `namespace`.
    pub fn host(&self, namespace: &str) -> ClusterHost {
        let kinds = self.clone();
        ClusterHost::new(self.view(namespace), namespace, move |gvk| kinds.is_namespaced(gvk))
    }
}

/// A resource as a server would have it: with a namespace if its kind has any, and with a uid.
fn stored<T: Resource>(resource: &T) -> Result<Object> {
    FakeCluster::new().serving::<T>().put_value(Object::from_resource(resource)?.to_value())
}

/// For methods that say that they panic: a test that is set up wrongly should stop there.
#[track_caller]
fn must<T>(what: &str, result: Result<T>) {
    let problem = result.err().map(|e| e.to_string());
    assert!(problem.is_none(), "{what}: {}", problem.unwrap_or_default());
}
