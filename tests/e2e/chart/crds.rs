//! The CRD of `UnionDeclaration` over the life of a release: the chart's Job upgrades it, and no declaration is lost.

use std::path::Path;

use serde_json::{Value, json};

use crate::guide::{ClusterWithNode, Shell, UNINSTALL};
use crate::registration::deployment_strategy;
use crate::support::control_plane::ControlPlane;
use crate::support::http::Answer;
use crate::support::kind::parse;
use crate::support::webhook::kube_unions;

const CRD: &str = include_str!("../../../manifests/webhook/crd.yaml");
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/uniondeclarations.kube-unions.dev";

/// A property of the schema that an older release lacks. The presets of environment variables have it.
const NEWER: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/unions/items/properties/emptyIsUnset";

const OF_A_NEWER_RELEASE: &str =
    "kubectl annotate --overwrite crd/uniondeclarations.kube-unions.dev kube-unions.dev/version=999.0.0";

fn get(control_plane: &ControlPlane, path: &str) -> Answer {
    control_plane.client().get(path).unwrap()
}

fn has_newer_crd(control_plane: &ControlPlane) -> bool {
    get(control_plane, PATH).body.pointer(NEWER).is_some()
}

/// Applies the CRD of an older release, as an owner who is not the Job.
fn apply_older_crd(control_plane: &ControlPlane, version: Option<&str>) {
    let mut crd = parse(CRD);
    let (parent, name) = NEWER.rsplit_once('/').unwrap();
    let removed = crd.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
    assert!(removed.is_some(), "the schema has {NEWER}");
    if let Some(version) = version {
        crd["metadata"]["annotations"] = json!({"kube-unions.dev/version": version});
    }
    let args = ["apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-"];
    let kubectl = control_plane.kubectl("release");
    kubectl.run_with(&args, &crd.to_string()).accepted();
    kubectl.run(&["wait", "--for=condition=Established", "crd/uniondeclarations.kube-unions.dev"]).accepted();
    assert!(!has_newer_crd(control_plane));
}

#[test]
fn an_upgrade_brings_the_crd_and_no_release_takes_a_declaration_away() {
    let Some(cluster) = ClusterWithNode::start(&[]) else { return };
    let control_plane = cluster.control_plane();
    let shell = &Shell::new(control_plane);
    // The answer has the uid and the content.
    let declaration = |name: &str| {
        let mut found = get(control_plane, &format!("/apis/kube-unions.dev/v1alpha1/uniondeclarations/{name}"));
        (found.status, found.body["metadata"]["uid"].take(), found.body["spec"].take())
    };
    let helm = |command: &str| {
        shell.prepare(&format!("helm {command} kube-unions charts/kube-unions -n kube-unions --set presets.env=warn"));
        let left = shell.prepare("kubectl -n kube-unions get serviceaccounts,jobs -o name");
        assert!(!left.contains("kube-unions-crds"), "the hook leaves nothing: {left}");
    };
    // Neither a template nor the Job can create the CRD in the release that needs it: the folder crds does.
    let install = "helm install kube-unions charts/kube-unions -n kube-unions --create-namespace --skip-crds";
    let refused = shell.prepare(&format!("! {install} --set presets.env=warn"));
    assert!(refused.contains("no matches for kind \"UnionDeclaration\""), "{refused}");
    assert_eq!(get(control_plane, PATH).status, 404);

    // The CRD was left by a release that was uninstalled: helm leaves it as it is, and the Job does not.
    apply_older_crd(control_plane, None);
    control_plane.kubectl("release").apply(&deployment_strategy("mine").to_string()).accepted();
    let mine = declaration("mine");
    shell.prepare("helm install kube-unions charts/kube-unions -n kube-unions --create-namespace");
    assert!(has_newer_crd(control_plane));
    assert_eq!(declaration("mine"), mine);

    // An upgrade whose presets need the new property.
    apply_older_crd(control_plane, Some("0.0.1"));
    helm("upgrade");
    assert!(has_newer_crd(control_plane));
    let preset = declaration("pod-env");
    assert_eq!(preset.2["unions"][0]["emptyIsUnset"], json!(["value"]));

    // An older release does not go back.
    shell.prepare(OF_A_NEWER_RELEASE);
    helm("upgrade");
    assert_eq!(get(control_plane, PATH).body["metadata"]["annotations"]["kube-unions.dev/version"], "999.0.0");
    assert_eq!([declaration("mine"), declaration("pod-env")], [mine.clone(), preset]);

    // The CRD and what the chart did not create outlive the release, and another one finds both.
    shell.prepare(UNINSTALL);
    assert!(has_newer_crd(control_plane));
    assert_eq!((declaration("mine"), declaration("pod-env").0), (mine.clone(), 404));
    helm("install");
    assert_eq!((declaration("mine"), declaration("pod-env").0), (mine, 200));
    install_crd(control_plane, shell);
}

/// The command of the Job says what it did, or why it could not.
fn install_crd(control_plane: &ControlPlane, shell: &Shell) {
    let kubectl = control_plane.kubectl("release");
    let admin = control_plane.admin_kubeconfig();
    let install = |kubeconfig: &Path, timeout: &str| {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        kube_unions(&["install-crd", &kubeconfig, &format!("--timeout={timeout}")], "")
    };
    let says = |text: &str| {
        let done = install(&admin, "30s").accepted();
        assert_eq!((done.stdout.as_str(), done.stderr), ("", format!("{text}\n")));
    };
    shell.prepare(OF_A_NEWER_RELEASE);
    says("the CRD uniondeclarations.kube-unions.dev is of the newer version 999.0.0 and stays as it is");
    apply_older_crd(control_plane, Some("0.0.1"));
    says("updated the CRD uniondeclarations.kube-unions.dev");
    kubectl.run(&["delete", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
    says("created the CRD uniondeclarations.kube-unions.dev");
    // It waited until the kind is served: kubectl finds it. Until its storage is ready, the API server has clients try again.
    kubectl.run(&["get", "uniondeclarations"]).accepted();
    says("the CRD uniondeclarations.kube-unions.dev is up to date");
    let written = get(control_plane, PATH).body;
    assert_eq!(written["metadata"]["annotations"]["kube-unions.dev/version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(written["spec"]["versions"], parse(CRD)["spec"]["versions"], "the CRD of the folder crds");

    kubectl.run(&["-n", "default", "create", "serviceaccount", "nobody"]).accepted();
    let nobody = control_plane.account_kubeconfig("default", "nobody");
    let forbidden = install(&nobody, "1s").refused("cannot install the CRD uniondeclarations.kube-unions.dev: ");
    assert_eq!(forbidden.code, Some(2));
    forbidden.refused("grant `get`, `patch` and `create` on the customresourcedefinition with this name");

    // Objects may be stored in a version that this program does not know.
    kubectl.run(&["delete", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
    let mut unknown = parse(CRD);
    unknown["spec"]["versions"][0]["name"] = "v9".into();
    kubectl.run_with(&["create", "-f", "-"], &unknown.to_string()).accepted();
    kubectl.run(&["wait", "--for=condition=Established", "crd/uniondeclarations.kube-unions.dev"]).accepted();
    install(&admin, "60s").refused("status.storedVersions[0]: Invalid value: \"v9\"");
    let stored = get(control_plane, PATH).body;
    assert_eq!(stored["spec"]["versions"][0]["name"], "v9", "nothing is lost");

    install(&control_plane.kubeconfig_of_nobody(), "1s").refused("within 1s: the API server does not answer");
}
