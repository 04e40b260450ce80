//! The CRD of `UnionDeclaration` over the life of a release: the chart's Job upgrades it, and no declaration is lost.

use std::path::Path;

use serde_json::{Value, json};

use super::release::{CRDS_JOB, Release};
use super::{CHART, RELEASE};
use crate::kind::parse;
use crate::registration::deployment_strategy;
use crate::webhook::kube_unions;

const CRD: &str = include_str!("../../../manifests/webhook/crd.yaml");
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/uniondeclarations.kube-unions.dev";
const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

/// A property of the schema that an older release lacks. The presets of environment variables have it.
const NEWER: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/unions/items/properties/emptyIsUnset";

const PRESETS: &str = "--set=presets.env=true";

impl Release {
    /// Applies the CRD of an older release, as an owner who is not the Job.
    fn apply_older_crd(&self, version: Option<&str>) {
        let mut crd = parse(CRD);
        let (parent, name) = NEWER.rsplit_once('/').unwrap();
        let removed = crd.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
        assert!(removed.is_some(), "the schema has {NEWER}");
        if let Some(version) = version {
            crd["metadata"]["annotations"] = json!({"kube-unions.dev/version": version});
        }
        let args = ["apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-"];
        self.kubectl.run_with(&args, &crd.to_string()).accepted();
        let wait = ["wait", "--for=condition=Established", "crd/uniondeclarations.kube-unions.dev"];
        self.kubectl.run(&wait).accepted();
        assert!(!self.has_newer_crd());
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.control_plane.client().get(path).unwrap();
        assert!(answer.is_success(), "{answer:?}");
        answer.body
    }

    fn has_newer_crd(&self) -> bool {
        self.get(PATH).pointer(NEWER).is_some()
    }

    /// Returns the uid and the content of a declaration.
    fn declaration(&self, name: &str) -> [Value; 2] {
        let found = self.get(&format!("{DECLARATIONS}/{name}"));
        [found["metadata"]["uid"].clone(), found["spec"].clone()]
    }

    /// Runs helm with a node for the Job of the CRD, which says this.
    #[track_caller]
    fn helm_with_crd_job(&self, args: &[&str], says: &str) {
        let (job, helm) = self.helm_with_a_node(CRDS_JOB, args);
        let job = job.accepted();
        assert_eq!(job.stderr, format!("{says}\n"));
        helm.accepted();
        for account in ["serviceaccounts", "jobs"] {
            let left = self.kubectl.run(&["-n", RELEASE, "get", account, "-o", "name"]).accepted().stdout;
            assert!(!left.contains("kube-unions-crds"), "the hook leaves nothing: {left}");
        }
    }
}

#[test]
fn an_upgrade_brings_the_crd_and_no_release_takes_a_declaration_away() {
    let Some(release) = Release::new() else { return };
    let install = ["install", RELEASE, CHART, "--create-namespace"];
    // Neither a template nor the Job can create the CRD in the release that needs it: the folder crds does.
    let refused = release.helm(&[&install[..], &["--skip-crds", PRESETS]].concat(), &Value::Null);
    refused.refused("no matches for kind \"UnionDeclaration\"");
    assert!(!release.is_there(PATH) && !release.is_there(CRDS_JOB));

    let upgrade = ["upgrade", RELEASE, CHART, PRESETS];
    let updated = "updated the CRD uniondeclarations.kube-unions.dev";

    // The CRD was left by a release that was uninstalled: helm leaves it as it is, and the Job does not.
    release.apply_older_crd(None);
    release.kubectl.apply(&deployment_strategy("mine").to_string()).accepted();
    let mine = release.declaration("mine");
    release.helm_with_crd_job(&install, updated);
    assert!(release.has_newer_crd());
    assert_eq!(release.declaration("mine"), mine);

    // An upgrade whose presets need the new property.
    release.apply_older_crd(Some("0.0.1"));
    release.helm_with_crd_job(&upgrade, updated);
    assert!(release.has_newer_crd());
    let preset = release.declaration("pod-env");
    assert_eq!(preset[1]["unions"][0]["emptyIsUnset"], json!(["value"]));
    release.helm_with_crd_job(&upgrade, "the CRD uniondeclarations.kube-unions.dev is up to date");

    // An older release does not go back.
    release
        .kubectl
        .run(&["annotate", "--overwrite", "crd/uniondeclarations.kube-unions.dev", "kube-unions.dev/version=999.0.0"])
        .accepted();
    let kept = "the CRD uniondeclarations.kube-unions.dev is of the newer version 999.0.0 and stays as it is";
    release.helm_with_crd_job(&upgrade, kept);
    assert_eq!([release.declaration("mine"), release.declaration("pod-env")], [mine.clone(), preset]);

    // The CRD and what the chart did not create outlive the release, and another one finds both.
    release.uninstall();
    assert!(release.has_newer_crd());
    assert_eq!(release.declaration("mine"), mine);
    assert!(!release.is_there(&format!("{DECLARATIONS}/pod-env")), "the chart's own declaration goes");
    release.helm_with_crd_job(&[&install[..], &[PRESETS]].concat(), kept);
    assert_eq!(release.declaration("mine"), mine);
    release.declaration("pod-env");
    install_crd(&release);
}

/// The command of the Job says what it did, or why it could not.
fn install_crd(release: &Release) {
    release.kubectl.run(&["delete", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
    let admin = release.control_plane.admin_kubeconfig();
    let install = |kubeconfig: &Path, timeout: &str| {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        kube_unions(&["install-crd", &kubeconfig, &format!("--timeout={timeout}")], "")
    };
    let says = |text: &str| {
        let done = install(&admin, "30s").accepted();
        assert_eq!((done.stdout.as_str(), done.stderr), ("", format!("{text}\n")));
    };
    says("created the CRD uniondeclarations.kube-unions.dev");
    // It waited until the kind is served: kubectl finds it. Until its storage is ready, the API server has clients try again.
    release.kubectl.run(&["get", "uniondeclarations"]).accepted();
    says("the CRD uniondeclarations.kube-unions.dev is up to date");
    let written = release.get(PATH);
    assert_eq!(written["metadata"]["annotations"]["kube-unions.dev/version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(written["spec"]["versions"], parse(CRD)["spec"]["versions"], "the CRD of the folder crds");

    release.kubectl.run(&["-n", "default", "create", "serviceaccount", "nobody"]).accepted();
    let nobody = release.control_plane.account_kubeconfig("default", "nobody");
    let forbidden = install(&nobody, "1s").refused("cannot install the CRD uniondeclarations.kube-unions.dev: ");
    assert_eq!(forbidden.code, Some(2));
    forbidden.refused("grant `get`, `patch` and `create` on the customresourcedefinition with this name");

    // Objects may be stored in a version that this program does not know.
    release.kubectl.run(&["delete", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
    let mut unknown = parse(CRD);
    unknown["spec"]["versions"][0]["name"] = "v9".into();
    release.kubectl.run_with(&["create", "-f", "-"], &unknown.to_string()).accepted();
    release.kubectl.run(&["wait", "--for=condition=Established", "crd/uniondeclarations.kube-unions.dev"]).accepted();
    install(&admin, "60s").refused("status.storedVersions[0]: Invalid value: \"v9\"");
    assert_eq!(release.get(PATH)["spec"]["versions"][0]["name"], "v9", "nothing is lost");

    install(&release.control_plane.kubeconfig_of_nobody(), "1s").refused("within 1s: the API server does not answer");
}
