//! Reach: the objects that the webhook is never asked about, and the CRDs that may not speak for their kind.
//!
//! Every source of declarations and everything that registers or answers asks here. The question is asked by group and
//! *resource* as well as by kind: the API server sends objects by the resource that a rule names, and a CRD may give any
//! plural to any kind.

use std::collections::BTreeSet;

/// Groups that a cluster is repaired with. They say who may call the API server, what it serves, whom it asks and whom it
/// lets wait:
///
/// - `rbac.authorization.k8s.io`: a wrong rule would deny the binding that grants the right to mend it, and the API server
///   reconciles its own roles when it starts;
/// - `certificates.k8s.io`: nodes renew their certificates through it, and cannot serve the webhook's pods without;
/// - `flowcontrol.apiserver.k8s.io`: an overloaded API server is relieved through it, and writes its own objects there;
/// - `kube-unions.dev`: a wrong declaration is put right by a write of one;
/// - `internal.apiserver.k8s.io`: API servers tell each other there which versions they store.
const GROUPS: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "kube-unions.dev",
    "rbac.authorization.k8s.io",
];

/// Group, resource and kind of objects that nodes and controllers write without end to say that they are alive; core
/// group: empty.
const KINDS: [(&str, &str, &str); 4] = [
    ("", "events", "Event"),
    ("", "nodes", "Node"),
    ("coordination.k8s.io", "leases", "Lease"),
    ("events.k8s.io", "events", "Event"),
];

/// True if objects of a kind, or of a resource where it is known, are never sent to the webhook: a webhook that is down, or
/// a wrong declaration, must not stand in the way of the cluster's own life, nor of its repair.
pub fn is_exempt(group: &str, resource: Option<&str>, kind: &str) -> bool {
    let is = |(of, plural, name): &(&str, &str, &str)| *of == group && (*name == kind || Some(*plural) == resource);
    GROUPS.contains(&group) || KINDS.iter().any(is)
}

/// The groups that an API server serves from its own code. It serves nothing of a CRD in one of them, whatever the
/// version; a rule for such a CRD would catch built-in objects alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltinGroups {
    /// The API server says which they are.
    Listed(BTreeSet<Box<str>>),
    /// They are not known. Every group counts as one of them whose name the project reserves for itself.
    Guessed,
}

impl BuiltinGroups {
    /// True if the API server serves the group from its own code, or may do so.
    pub fn has(&self, group: &str) -> bool {
        match self {
            Self::Listed(groups) => groups.contains(group),
            Self::Guessed => {
                let reserved = |suffix| group.ends_with(suffix);
                !group.contains('.') || [".k8s.io", ".kubernetes.io"].into_iter().any(reserved)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_is_repaired_with_is_out_of_reach_and_the_rest_is_not() {
        for (group, resource, kind) in [
            ("coordination.k8s.io", "leases", "Lease"),
            ("", "events", "Event"),
            ("events.k8s.io", "events", "Event"),
            ("", "nodes", "Node"),
            ("authentication.k8s.io", "tokenreviews", "TokenReview"),
            ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"),
            ("apiregistration.k8s.io", "apiservices", "APIService"),
            ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
            ("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest"),
            ("flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema"),
            ("kube-unions.dev", "uniondeclarations", "UnionDeclaration"),
        ] {
            assert!(is_exempt(group, Some(resource), kind), "{kind}.{group}");
            assert!(is_exempt(group, None, kind), "{kind}.{group}");
        }
        for (group, resource, kind) in [
            ("", "pods", "Pod"),
            ("apps", "deployments", "Deployment"),
            ("example.com", "nodes", "Node"),
            ("", "leases", "Lease"),
            ("coordination.k8s.io", "leasecandidates", "LeaseCandidate"),
            ("gateway.networking.k8s.io", "gateways", "Gateway"),
        ] {
            assert!(!is_exempt(group, Some(resource), kind), "{kind}.{group}");
        }
    }

    #[test]
    fn another_kind_does_not_bring_a_resource_within_reach_nor_another_resource_a_kind() {
        assert!(is_exempt("coordination.k8s.io", Some("leases"), "Foo"));
        assert!(is_exempt("coordination.k8s.io", Some("foos"), "Lease"));
        assert!(is_exempt("", Some("nodes"), "Foo"));
        assert!(!is_exempt("coordination.k8s.io", Some("foos"), "Foo"));
    }

    #[test]
    fn groups_that_are_not_known_are_taken_for_the_servers_own_by_their_names() {
        for (group, own) in [
            ("apps", true),
            ("networking.k8s.io", true),
            ("gateway.networking.k8s.io", true),
            ("x.kubernetes.io", true),
            ("example.com", false),
            ("k8s.io.example.com", false),
            ("cluster.x-k8s.io", false),
        ] {
            assert_eq!(BuiltinGroups::Guessed.has(group), own, "{group}");
        }
        let told = BuiltinGroups::Listed(BTreeSet::from(["networking.k8s.io".into()]));
        assert!(told.has("networking.k8s.io") && !told.has("gateway.networking.k8s.io"));
    }
}
