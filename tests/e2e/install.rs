//! `manifests/webhook`, installed as its README says, on an API server without nodes.

use crate::cluster::Cluster;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/webhook");
const ACCOUNT: &str = "--as=system:serviceaccount:kube-unions:kube-unions";

#[test]
fn the_manifests_are_accepted_in_one_go_and_grant_no_more_than_is_needed() {
    let Some(cluster) = Cluster::shared() else { return };
    let kubectl = cluster.control_plane.kubectl("admin");
    kubectl.run(&["apply", "-k", FOLDER]).accepted().warned(&[]);
    // In a dry run: the configurations would send objects to a Service without endpoints.
    let registration = format!("{FOLDER}/registration.yaml");
    kubectl.run(&["apply", "--dry-run=server", "-f", &registration]).accepted().warned(&[]);

    let webhooks = "mutatingwebhookconfigurations/kube-unions";
    for (namespace, verb, resource, answer) in [
        ("all", "list", "customresourcedefinitions", "yes"),
        ("all", "watch", "customresourcedefinitions", "yes"),
        ("all", "list", "uniondeclarations.kube-unions.dev", "yes"),
        ("all", "watch", "uniondeclarations.kube-unions.dev", "yes"),
        ("all", "create", webhooks, "yes"),
        ("all", "patch", webhooks, "yes"),
        ("all", "update", webhooks, "yes"),
        ("all", "get", "clusterroles.rbac.authorization.k8s.io/kube-unions", "yes"),
        ("kube-unions", "update", "secrets/kube-unions-tls", "yes"),
        ("kube-unions", "create", "secrets", "yes"),
        ("default", "create", "events.events.k8s.io", "no"),
        ("all", "update", "customresourcedefinitions", "no"),
        ("all", "patch", "uniondeclarations.kube-unions.dev", "no"),
        ("all", "delete", webhooks, "no"),
        ("all", "get", "clusterroles.rbac.authorization.k8s.io/other", "no"),
        ("all", "list", "namespaces", "no"),
        ("all", "patch", "mutatingwebhookconfigurations/other", "no"),
        ("all", "create", "mutatingwebhookconfigurations", "no"),
        ("kube-unions", "get", "secrets/other", "no"),
        ("kube-unions", "list", "secrets", "no"),
        ("default", "create", "secrets", "no"),
        ("all", "get", "secrets", "no"),
        ("all", "list", "pods", "no"),
    ] {
        let place = if namespace == "all" { "--all-namespaces".to_owned() } else { format!("--namespace={namespace}") };
        let asked = kubectl.run(&["auth", "can-i", verb, resource, &place, ACCOUNT]);
        assert_eq!(asked.stdout.trim(), answer, "may it {verb} {resource} in {namespace}?");
    }
    let status = ["auth", "can-i", "patch", "uniondeclarations.kube-unions.dev", "--subresource=status", ACCOUNT];
    assert_eq!(kubectl.run(&status).stdout.trim(), "yes");
}
