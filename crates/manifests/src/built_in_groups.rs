//! The groups of built-in kinds.

/// The groups of built-in kinds whose names have a dot.
const GROUPS: &str = "admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io authentication.k8s.io \
                      authorization.k8s.io certificates.k8s.io coordination.k8s.io discovery.k8s.io events.k8s.io \
                      flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io \
                      rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io";

/// Returns true if only an API server itself has kinds of a group.
pub fn is_built_in_group(group: &str) -> bool {
    !group.contains('.') || GROUPS.split(' ').any(|known| known == group)
}
