//! Pages that install the webhook on a cluster with a node.

use serde_json::json;

use super::node::ClusterWithNode;
use super::page::Page;
use super::shell::Shell;
use crate::contrib::definitions_of;
use crate::support::version::{Feature, lacks};

/// The chart, installed without a registry.
pub(crate) const INSTALL: &str = "helm install kube-unions charts/kube-unions -n kube-unions --create-namespace --wait";

/// Ends a release, and waits until its pods are gone.
pub(crate) const UNINSTALL: &str = "helm uninstall kube-unions -n kube-unions --wait";

/// Waits for the pods of a release.
const ROLLED_OUT: &str = "kubectl -n kube-unions rollout status deployment/kube-unions";

/// The kind of Getting started, of which no object is valid.
const INVALID: &str = "The Cache \"sessions\" is invalid: \n\
    * spec.storage.disk: Required value: must be specified when `type` is \"Disk\"\n\
    * spec.storage.memory: Forbidden: may only be specified when `type` is \"Memory\"";

pub(super) fn troubleshooting_and_operating([troubleshooting, operating]: &mut [Page; 2]) -> bool {
    with_policies(|shell| {
        caches(shell);
        shell.prepare("kube-unions annotate crd.yaml | kubectl apply -f -");
        shell.prepare(INSTALL);
        enforced(shell);
        troubleshooting.follow_one("kubectl delete clusterrolebinding", shell);
        accepted(shell);
        shell.prepare("helm upgrade kube-unions charts/kube-unions -n kube-unions --reuse-values --wait");
        enforced(shell);
        shell.replace("NAME", "caches.demo.example.com");
        troubleshooting.follow_one("kubectl get crd", shell);
        let name = "kubectl -n kube-unions get pods -l app.kubernetes.io/name=kube-unions -o jsonpath='{.items[0].metadata.name}'";
        shell.replace("POD", shell.prepare(name));
        troubleshooting.follow_up_to("kubectl delete clusterrole ", shell);
        shell.prepare("kubectl delete namespace kube-unions");
        accepted(shell);
        troubleshooting.follow_one("kubectl delete clusterrole ", shell);
        unregistered(shell);
        accepted(shell);
        shell.prepare(INSTALL);
        enforced(shell);
        troubleshooting.follow_up_to("kubectl delete mutatingwebhookconfiguration", shell);
        shell.prepare("kubectl delete clusterrolebinding kube-unions-registration");
        troubleshooting.follow(shell);
        unregistered(shell);
        shell.prepare(UNINSTALL);

        shell.turn_over();
        accepted(shell);
        shell.prepare("kubectl create -f bad.yaml");
        operating.follow_up_to("kubectl apply -k", shell);
        shell.prepare(UNINSTALL);
        operating.follow_up_to("kubectl label namespace", shell);
        shell.replace("YOUR-NAMESPACE", "default");
        operating.follow_up_to("maintained-by=serve", shell);
        shell.prepare("kube-unions unregister && kubectl delete -k manifests/webhook --ignore-not-found");
        shell.prepare(&format!("{INSTALL} --set enforcement=policies"));
        operating.follow(shell);
    })
}

pub(super) fn getting_started_and_declaring([getting_started, page]: &mut [Page; 2]) -> bool {
    with_shell(|shell| {
        getting_started.follow(shell);
        shell.prepare("kubectl delete crd caches.demo.example.com");
        shell.prepare("sed -i 's/Disk: {name: disk}/Disc: {name: disk}/' crd.yaml");
        page.follow_one("kube-unions lint", shell);
        shell.prepare("sed -i 's/Disc: {name: disk}/Disk: {name: disk}/' crd.yaml");
        shell.workspace.write("declaration.yaml", &page.block("yaml", "name: deployment-strategy"));
        page.follow_up_to("helm upgrade", shell);
        let definitions = json!({"apiVersion": "v1", "kind": "List", "items": definitions_of("cert-manager.io")});
        shell.workspace.write("issuers.json", &definitions.to_string());
        shell.prepare("kubectl apply -f issuers.json");
        shell.prepare("kubectl wait --for=condition=Established crd/issuers.cert-manager.io");
        let (kind, metadata) = ("Issuer", json!({"name": "tests", "namespace": "default"}));
        let spec = json!({"ca": {"secretName": "tests"}});
        let issuer = json!({"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": spec});
        shell.workspace.write("issuer.yaml", &issuer.to_string());
        shell.prepare("kubectl create -f issuer.yaml");
        page.follow(shell);
    })
}

pub(super) fn readmes([page, command_line, manifests]: &mut [Page; 3]) -> bool {
    with_policies(|shell| {
        shell.prepare(INSTALL);
        shell.prepare("kubectl create deployment shop --image=example.com/shop:1 --replicas=0");
        shell.prepare("cp manifests/samples/rollout/crd.yaml crd.yaml");
        page.follow_up_to("kubectl patch rollout", shell);
        shell.prepare("kubectl wait --for=condition=Established crd/rollouts.samples.kube-unions.dev");
        shell.prepare("sed 's/^  name: .*/  name: shop/' manifests/samples/rollout/valid-rolling-update.yaml | kubectl create -f -");
        page.follow_up_to("kubectl apply -f manifests/policies", shell);
        shell.prepare(UNINSTALL);
        page.follow(shell);
        shell.prepare("mkdir -p .cargo/bin && cp --no-dereference bin/kube-unions .cargo/bin");
        shell.replace("~/", format!("{}/", shell.workspace.path().display()));
        command_line.follow(shell);
        let version = shell.prepare("kube-unions version");
        assert_eq!(shell.prepare("PATH=$PWD/.cargo/bin:$PATH kubectl unions version"), version);
        let option = shell.prepare("PATH=$PWD/.cargo/bin:$PATH kubectl __complete unions lint --st 2>/dev/null");
        assert_eq!(option, "--strict\tExit with 1 for warnings, too\n:4\n");

        shell.turn_over();
        shell.prepare(UNINSTALL);
        shell.replace("YOUR-NAMESPACE", "default");
        manifests.follow_up_to("kube-unions unregister", shell);
        unregistered(shell);
        shell.prepare("kubectl apply -k manifests/webhook");
        manifests.follow(shell);
        unregistered(shell);
    })
}

pub(super) fn readme_of_the_chart([page]: &mut [Page; 1]) -> bool {
    with_policies(|shell| {
        page.follow_up_to("webhook.enabled=false", shell);
        shell.prepare(UNINSTALL);
        page.follow_up_to("kubectl label namespace", shell);
        shell.prepare("helm upgrade kube-unions charts/kube-unions -n kube-unions --reset-values --wait");
        caches(shell);
        shell.prepare("kube-unions annotate crd.yaml | kubectl apply -f -");
        enforced(shell);
        shell.prepare("kubectl create namespace shop");
        shell.replace("YOUR-NAMESPACE", "shop");
        page.follow_up_to("kubectl delete clusterrolebinding", shell);
        accepted(shell);
        shell.prepare("helm upgrade kube-unions charts/kube-unions -n kube-unions --reuse-values --set enforcement=on");
        enforced(shell);
        page.follow_up_to("enforcement=policies", shell);
        unregistered(shell);
        page.follow_up_to("hostNetwork=true", shell);
        enforced(shell);
        shell.prepare(UNINSTALL);
        page.follow(shell);
        shell.prepare(ROLLED_OUT);
    })
}

/// Runs `work` in a shell on a cluster with a node and without the webhook. Returns false if that is skipped.
fn with_shell(work: impl FnOnce(&mut Shell)) -> bool {
    let Some(cluster) = ClusterWithNode::start(&[]) else { return false };
    work(&mut Shell::new(cluster.control_plane()));
    true
}

/// Like [`with_shell`], for a page that applies mutating policies, too.
fn with_policies(work: impl FnOnce(&mut Shell)) -> bool {
    !lacks(Feature::MutatingPolicies) && with_shell(work)
}

/// Writes the CRD and the invalid object of Getting started, `crd.yaml` and `bad.yaml`.
pub(crate) fn caches(shell: &Shell) {
    let page = Page::open("docs/guide/getting-started.md");
    for file in ["crd.yaml", "bad.yaml"] {
        let block = page.block("sh", &format!("cat > {file} <<"));
        let (file, _) = block.split_once("\nEOF\n").expect("the block has a document");
        shell.prepare(&format!("{file}\nEOF\n"));
    }
}

/// Waits until the unions of Getting started are enforced.
pub(crate) fn enforced(shell: &Shell) {
    shell.wait_until("kubectl create --dry-run=server -f bad.yaml", INVALID);
}

/// Waits until the unions of Getting started are not enforced.
pub(crate) fn accepted(shell: &Shell) {
    let created = "cache.demo.example.com/sessions created (server dry run)";
    shell.wait_until("kubectl create --dry-run=server -f bad.yaml", created);
}

/// Waits until nothing is registered.
pub(crate) fn unregistered(shell: &Shell) {
    shell.wait_until("kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations", "No resources found");
}
