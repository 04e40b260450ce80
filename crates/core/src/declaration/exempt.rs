//! Exempt kinds, which are never sent to a webhook, and groups in which no CRD defines a kind.
//!
//! Every source of declarations and every registration asks this module. It decides by group and *resource* as well as by
//! kind: the API server sends objects by the resource that a rule names, and a CRD may give any plural to any kind.

use std::collections::BTreeSet;

/// Groups by which a cluster is repaired. They decide who may call the API server, what it serves, which webhooks it calls
/// and which requests wait:
///
/// - `rbac.authorization.k8s.io`: a wrong rule would deny the binding that grants the right to repair it, and the API
///   server reconciles its own roles when it starts;
/// - `certificates.k8s.io`: nodes renew their certificates through it, and cannot run the webhook's pods without them;
/// - `flowcontrol.apiserver.k8s.io`: it relieves an overloaded API server, which also writes its own objects there;
/// - `kube-unions.dev`: a wrong declaration is repaired by a write of it;
/// - `internal.apiserver.k8s.io`: API servers record there which versions they store.
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

/// Group, resource and kind of the objects that nodes and controllers write all the time as a sign of life.
const KINDS: [(&str, &str, &str); 4] = [
    ("", "events", "Event"),
    ("", "nodes", "Node"),
    ("coordination.k8s.io", "leases", "Lease"),
    ("events.k8s.io", "events", "Event"),
];

/// Returns true if objects of a kind, or of a resource if it is known, are never sent to a webhook. A webhook that is down,
/// or a wrong declaration, must not stop the cluster from running or from being repaired.
pub fn is_exempt(group: &str, resource: Option<&str>, kind: &str) -> bool {
    let is = |(of, plural, name): &(&str, &str, &str)| *of == group && (*name == kind || Some(*plural) == resource);
    GROUPS.contains(&group) || KINDS.iter().any(is)
}

/// The groups that an API server serves from its own code. It serves no CRD in such a group; a rule for the CRD would only
/// catch built-in objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltinGroups {
    /// The groups, as the API server lists them.
    Listed(BTreeSet<Box<str>>),
    /// The groups are not known. Every group counts whose name is reserved for Kubernetes.
    Guessed,
}

impl BuiltinGroups {
    /// Returns true if the API server serves the group from its own code, or may do so.
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
