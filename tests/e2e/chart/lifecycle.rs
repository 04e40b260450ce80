//! A release from its installation to its end, on a cluster with a node, while objects are written all the time.

use serde_json::json;

use crate::guide::{ClusterWithNode, INSTALL, Shell, UNINSTALL, accepted, caches, enforced, unregistered};
use crate::support::load::Load;
use crate::support::version::{Feature, lacks};

/// Values, and what Helm's user has to know about them.
const NOTES: [(&str, &str); 2] = [
    ("hostNetwork=true,webhook.port=10260", "The control plane must reach port 10260 of the nodes."),
    ("webhook.enabled=false,policies.presets=true", "kubectl get mutatingadmissionpolicies"),
];

#[test]
fn a_release_that_is_switched_off_and_on_and_uninstalled_loses_no_write_and_leaves_nothing_behind() {
    let Some(cluster) = ClusterWithNode::start(&[]) else { return };
    let shell = &Shell::new(cluster.control_plane());
    for (values, says) in NOTES {
        let install = "helm install kube-unions charts/kube-unions --dry-run=client";
        let shown = shell.prepare(&format!("{install} --set {values}"));
        assert!(shown.contains(says), "no `{says}`\n{shown}");
    }
    let installed = shell.prepare(INSTALL);
    let emergency = installed.find("kubectl delete clusterrolebinding kube-unions-registration").unwrap();
    let after = "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration kube-unions";
    assert!(emergency < installed.find(after).unwrap(), "the order matters:\n{installed}");
    let logs = "kubectl -n kube-unions logs -l app.kubernetes.io/name=kube-unions --tail=-1";
    shell.wait_until(&format!("{logs} | grep -c '\"listening\"'"), "2");
    shell.wait_until(&format!("{logs} | grep -c 'made a new CA'"), "1");
    let secret = "kubectl -n kube-unions get secret kube-unions-tls -o jsonpath='{.type} {.metadata.labels}'";
    shell.wait_until(secret, r#"kubernetes.io/tls {…"app.kubernetes.io/name":"kube-unions"…}"#);

    caches(shell);
    shell.prepare("kube-unions annotate crd.yaml | kubectl apply -f -");
    enforced(shell);
    let valid = json!({
        "apiVersion": "demo.example.com/v1", "kind": "Cache", "metadata": {"name": "valid"},
        "spec": {"storage": {"type": "Memory"}},
    });
    let path = "/apis/demo.example.com/v1/namespaces/default/caches";
    let load = Load::start(cluster.control_plane().client(), path, vec![valid]);
    load.wait_for_a_round(1);
    let upgrade = "helm upgrade kube-unions charts/kube-unions -n kube-unions --reuse-values --wait";
    shell.prepare(&format!("{upgrade} --set enforcement=off"));
    accepted(shell);
    shell.prepare("kubectl create -f bad.yaml");
    shell.prepare("helm rollback kube-unions 1 -n kube-unions --wait");
    enforced(shell);
    let labelled = shell.prepare("kubectl label cache sessions team=a");
    assert!(!labelled.contains("let through because"), "the API server does not ask: {labelled}");
    uninstall(shell);
    let lost: Vec<_> = load.finish().into_iter().filter(|outcome| outcome.status() != 201).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    if !lacks(Feature::MutatingPolicies) {
        shell.prepare(&format!("{INSTALL} --set enforcement=policies,extraArgs[0]=--handover-delay=2s"));
        let owner = "{.items[*].metadata.ownerReferences[0].kind}/{.items[*].metadata.ownerReferences[0].name}";
        let owner = format!("kubectl get mutatingadmissionpolicies -o jsonpath='{owner}'");
        shell.wait_until(&owner, "ClusterRole/kube-unions");
        uninstall(shell);
    }
}

/// Uninstalls the release. Nothing is left but the CRD, for the declarations of others.
fn uninstall(shell: &Shell) {
    shell.prepare("helm get manifest kube-unions -n kube-unions > rendered.yaml");
    shell.prepare(UNINSTALL);
    unregistered(shell);
    let of_the_cluster = "clusterroles,clusterrolebindings,mutatingadmissionpolicies,validatingadmissionpolicies,\
                          mutatingadmissionpolicybindings,validatingadmissionpolicybindings";
    let names = format!("kubectl get {of_the_cluster} --ignore-not-found -o name | grep union || true");
    shell.wait_until(&names, "");
    shell.wait_until("kubectl get -f rendered.yaml --ignore-not-found -o name", "");
    shell.wait_until("kubectl -n kube-unions get jobs -o name", "");
    shell.prepare("kubectl get crd uniondeclarations.kube-unions.dev");
}
