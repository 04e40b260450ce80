//! `manifests/webhook` as its README says, as far as an API server without nodes can tell.

use base64::Engine as _;

use crate::cluster::Cluster;
use crate::process::Workspace;
use crate::webhook;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/webhook");
const ACCOUNT: &str = "--as=system:serviceaccount:kube-unions:kube-unions";

#[test]
fn the_manifests_are_accepted_step_by_step_and_grant_no_more_than_is_needed() {
    let Some(cluster) = Cluster::shared() else { return };
    let kubectl = cluster.control_plane.kubectl("admin");
    let workspace = Workspace::new("install");
    let certs = workspace.path().join("certs");
    let file = |name: &str| certs.join(name).display().to_string();
    webhook::kube_unions(
        &["certs", "--dir", &certs.display().to_string(), "--host", "kube-unions.kube-unions.svc"],
        "",
    )
    .accepted();

    kubectl.run(&["apply", "-f", &format!("{FOLDER}/namespace.yaml")]).accepted();
    let (cert, key) = (format!("--cert={}", file("tls.crt")), format!("--key={}", file("tls.key")));
    kubectl.run(&["-n", "kube-unions", "create", "secret", "tls", "kube-unions-tls", &cert, &key]).accepted();
    kubectl.run(&["apply", "-k", FOLDER]).accepted().warned(&[]);

    // Not for good: there is no node to run what it would call.
    let registration = std::fs::read_to_string(format!("{FOLDER}/registration.yaml")).unwrap();
    let ca = base64::prelude::BASE64_STANDARD.encode(std::fs::read(file("ca.crt")).unwrap());
    let registration = registration.replace("CA_BUNDLE", &ca);
    kubectl.run_with(&["apply", "--dry-run=server", "-f", "-"], &registration).accepted().warned(&[]);

    for (verb, resource, answer) in [
        ("list", "customresourcedefinitions", "yes"),
        ("watch", "customresourcedefinitions", "yes"),
        ("list", "uniondeclarations.kube-unions.dev", "yes"),
        ("watch", "uniondeclarations.kube-unions.dev", "yes"),
        ("update", "customresourcedefinitions", "no"),
        ("patch", "uniondeclarations.kube-unions.dev", "no"),
        ("get", "secrets", "no"),
        ("list", "pods", "no"),
    ] {
        let asked = kubectl.run(&["auth", "can-i", verb, resource, "--all-namespaces", ACCOUNT]);
        assert_eq!(asked.stdout.trim(), answer, "may it {verb} {resource}?");
    }
    for (verb, namespace, answer) in
        [("create", "default", "yes"), ("create", "kube-system", "no"), ("list", "default", "no")]
    {
        let asked = kubectl.run(&["auth", "can-i", verb, "events.events.k8s.io", "-n", namespace, ACCOUNT]);
        assert_eq!(asked.stdout.trim(), answer, "may it {verb} events in {namespace}?");
    }
    let status = ["auth", "can-i", "patch", "uniondeclarations.kube-unions.dev", "--subresource=status", ACCOUNT];
    assert_eq!(kubectl.run(&status).stdout.trim(), "yes");
}
