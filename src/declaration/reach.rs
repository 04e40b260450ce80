//! Kinds whose objects no webhook of ours is ever asked about, whatever is declared of them.

/// Groups whose objects say who may call the API server, what it serves, and whom it asks: those that a cluster is
/// repaired with. Our own are among them, since a declaration that is wrong is put right by a write of one.
const GROUPS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "kube-unions.dev",
];

/// Kinds that nodes and controllers write without end to say that they are alive; core group: empty.
const KINDS: [(&str, &str); 4] =
    [("", "Event"), ("", "Node"), ("coordination.k8s.io", "Lease"), ("events.k8s.io", "Event")];

/// Whether objects of a kind are never sent to the webhook: one that is down, or a declaration that is wrong, must not
/// stand in the way of the cluster's own life, nor of its repair.
pub fn is_out_of_reach(group: &str, kind: &str) -> bool {
    GROUPS.contains(&group) || KINDS.contains(&(group, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_is_repaired_with_is_out_of_reach_and_the_rest_is_not() {
        for (group, kind) in [
            ("coordination.k8s.io", "Lease"),
            ("", "Event"),
            ("events.k8s.io", "Event"),
            ("", "Node"),
            ("authentication.k8s.io", "TokenReview"),
            ("authorization.k8s.io", "SubjectAccessReview"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("apiregistration.k8s.io", "APIService"),
            ("kube-unions.dev", "UnionDeclaration"),
        ] {
            assert!(is_out_of_reach(group, kind), "{kind}.{group}");
        }
        for (group, kind) in [
            ("", "Pod"),
            ("apps", "Deployment"),
            ("example.com", "Node"),
            ("", "Lease"),
            ("coordination.k8s.io", "LeaseCandidate"),
        ] {
            assert!(!is_out_of_reach(group, kind), "{kind}.{group}");
        }
    }
}
