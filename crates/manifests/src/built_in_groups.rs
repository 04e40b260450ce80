//! The groups of built-in kinds.

use kube_unions_core::names::GroupVersionKind;

/// The groups of built-in kinds whose names have a dot.
const GROUPS: &str = "admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io authentication.k8s.io \
                      authorization.k8s.io certificates.k8s.io coordination.k8s.io discovery.k8s.io events.k8s.io \
                      flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io \
                      rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io";

/// The versions without unions of kinds that have some in another version: group, version and kind.
const WITHOUT_UNIONS: [(&str, &str, &str); 1] = [("autoscaling", "v1", "HorizontalPodAutoscaler")];

/// Returns true for a version that an API server serves and that has no unions, although another version of the kind has some.
pub(crate) fn is_without_unions(kind: &GroupVersionKind) -> bool {
    WITHOUT_UNIONS.contains(&(&*kind.group, &*kind.version, &*kind.kind))
}

/// Returns true if only an API server itself has kinds of a group.
pub fn is_built_in_group(group: &str) -> bool {
    !group.contains('.') || GROUPS.split(' ').any(|known| known == group)
}
