//! What a fake cluster knows of kinds without having been told.

use horchestra_core::{GroupKind, GroupVersionKind, Kind, kube_core};

/// The kinds of the cluster that Kubernetes and Yoke bring along (`kubectl api-resources --namespaced=false`).
const OF_THE_CLUSTER: &[(&str, &[&str])] = &[
    ("", &["Namespace", "Node", "PersistentVolume", "ComponentStatus"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
    ("yoke.cd", &["Airway", "ClusterFlight"]),
];

/// Whether a kind is one that lives outside namespaces.
pub(super) fn of_the_cluster(kind: &GroupKind) -> bool {
    OF_THE_CLUSTER.iter().any(|(group, kinds)| **group == *kind.group && kinds.contains(&&*kind.kind))
}

/// Whether a group comes with Kubernetes: its name has no dot, or belongs to `k8s.io`.
pub(super) fn is_builtin(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// A kind with the plural that is usual for its name.
pub(super) fn guess(gvk: &GroupVersionKind, namespaced: bool) -> Kind {
    let theirs = kube_core::GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    Kind { gvk: gvk.clone(), plural: kube_core::ApiResource::from_gvk(&theirs).plural.into(), namespaced }
}
