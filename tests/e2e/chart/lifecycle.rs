//! A release from its installation to its end: the pods' processes register themselves with the rights of the chart, and unions are
//! enforced through the API server.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::enforcement::{post_invalid, write};
use super::pods::{OF_DECLARATIONS, Pods, while_doing};
use super::release::{ACCOUNTS, Release, UNREGISTER_JOB, configurations};
use super::{CHART, RELEASE, id};
use crate::cluster::AnyCluster;
use crate::kind::{Kind, documents};
use crate::ratcheting::invalid;
use crate::registration::{assert_switched, decoded};
use crate::tls;
use fixtures::wait::{SETTLED, eventually};

const SECRET: &str = "/api/v1/namespaces/kube-unions/secrets/kube-unions-tls";

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/uniondeclarations.kube-unions.dev";

const SWITCH: &str = r#"{"spec":{"strategy":{"type":"Recreate"}}}"#;

/// The entries once a kind has unions.
const OF_CUSTOMS: [&str; 4] = [
    "declarations.kube-unions.dev",
    "definitions.kube-unions.dev",
    "mutate.kube-unions.dev",
    "validate.kube-unions.dev",
];

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

/// Helm says what its user has to know about these values.
fn notes(release: &Release) {
    for (values, says) in [
        (
            json!({"hostNetwork": true, "webhook": {"port": 10260}}),
            "The control plane must reach port 10260 of the nodes.",
        ),
        (
            json!({"webhook": {"enabled": false}, "policies": {"presets": true}}),
            "kubectl get mutatingadmissionpolicies",
        ),
    ] {
        let install = ["install", RELEASE, CHART, "--dry-run=client"];
        let shown = release.helm(&install, &values).accepted().stdout;
        assert!(shown.contains(says), "no `{says}`\n{shown}");
    }
}

#[test]
fn what_the_chart_installs_registers_itself_enforces_and_leaves_nothing_behind() {
    let Some(release) = Release::new() else { return };
    notes(&release);
    let installed = release.install(&Value::Null).stdout;
    assert!(installed.contains("helm test kube-unions -n kube-unions --logs"), "{installed}");
    let emergency = installed.find("kubectl delete clusterrolebinding kube-unions-registration").unwrap();
    let after = "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration kube-unions";
    assert!(emergency < installed.find(after).unwrap(), "the order matters:\n{installed}");
    assert!(!release.is_there(SECRET), "the chart brings no certificate");
    assert_eq!(release.entries(), [] as [Value; 0]);

    // Two replicas at once, and nothing that has unions.
    let pods = Pods::start(&release);
    assert_eq!(pods.ports().len(), 2);
    pods.wait_for_entries(&OF_DECLARATIONS);
    let made = pods.logs().iter().filter(|log| log.contains("made a new CA")).count();
    assert_eq!(made, 1, "of two one was first");

    // A kind with unions.
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    pods.wait_for_entries(&OF_CUSTOMS);
    assert!(eventually(SETTLED, || post_invalid(&rollouts) == 422), "{}", pods.logs().join("\n\n"));
    rollouts.enforce();
    assert_switched(&rollouts);

    // Both replicas serve under one CA, which both configurations hold.
    let secret = release.control_plane.client().get(SECRET).unwrap().body["data"].clone();
    let [ca, leaf] = ["ca.crt", "tls.crt"].map(|key| decoded(&secret[key]));
    let (authorities, leaf) = (certificates(&ca), certificates(&leaf).remove(0));
    assert_eq!(authorities.len(), 1);
    for port in pods.ports() {
        let served = tls::served(port, "kube-unions.kube-unions.svc", &ca);
        assert_eq!(served.as_ref(), Ok(&leaf));
    }
    for entry in release.entries() {
        assert_eq!(certificates(&decoded(&entry["clientConfig"]["caBundle"])), authorities, "{}", entry["name"]);
        assert_eq!(entry["clientConfig"]["service"]["port"], pods.service_port());
    }

    // `helm test`, with its own account.
    let pod = format!("/api/v1/namespaces/{RELEASE}/pods/kube-unions-verify");
    let (verified, test) = release.helm_with_a_node(&pod, &["test", RELEASE]);
    assert_eq!(verified.stdout.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{verified:#?}");
    assert!(test.accepted().stdout.contains("Phase:          Succeeded"));
    assert!(release.is_there(&pod), "the pod stays, for its log");

    presets(&release, &pods);
    uninstall(&release, pods, &rollouts);
}

/// `kubectl patch` switches the strategy of a built-in type, through the entry with failurePolicy Ignore.
fn presets(release: &Release, pods: &Pods<'_>) {
    let kubectl = &release.kubectl;
    kubectl.run(&["create", "deployment", "d", "--image=example.com/app:1"]).accepted();
    let patch = ["patch", "deployment", "d", "--type=merge", "-p", SWITCH];
    kubectl
        .run(&patch)
        .refused("spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'");
    release.set("presets.strategies=true");
    let all = [
        "declarations.kube-unions.dev",
        "definitions.kube-unions.dev",
        "mutate.builtin.kube-unions.dev",
        "mutate.kube-unions.dev",
        "validate.builtin.kube-unions.dev",
        "validate.kube-unions.dev",
    ];
    pods.wait_for_entries(&all);
    for entry in release.entries() {
        let fails = ["mutate.kube-unions.dev", "validate.kube-unions.dev"].map(Value::from).contains(&entry["name"]);
        assert_eq!(entry["failurePolicy"], if fails { "Fail" } else { "Ignore" }, "{}", entry["name"]);
    }
    assert!(eventually(SETTLED, || kubectl.run(&patch).succeeded()), "{}", pods.logs().join("\n\n"));
    let strategy = kubectl.run(&["get", "deployment", "d", "-o", "jsonpath={.spec.strategy}"]).accepted().stdout;
    assert_eq!(strategy, r#"{"type":"Recreate"}"#);
    release.helm(&["rollback", RELEASE, "1", "--no-hooks"], &Value::Null).accepted();
    pods.wait_for_entries(&OF_CUSTOMS);
}

/// While both replicas run, as they do in a cluster until the release is gone.
fn uninstall(release: &Release, pods: Pods<'_>, rollouts: &Kind<'_>) {
    const TROUBLE: &str = "cannot reconcile the webhook configurations";
    rollouts.apply("busy", &json!({"strategy": {"type": "Recreate"}})).accepted();
    let rendered = documents(&release.helm(&["get", "manifest", RELEASE], &Value::Null).accepted().stdout);
    let before: Vec<usize> = pods.logs().iter().map(|log| log.matches(TROUBLE).count()).collect();
    let work = || {
        release.uninstall();
        assert_eq!(release.entries(), [] as [Value; 0]);
        // Each of them tries, and is forbidden.
        let tried = || pods.logs().iter().zip(&before).all(|(log, before)| log.matches(TROUBLE).count() > *before);
        assert!(eventually(SETTLED, tried), "{}", pods.logs().join("\n\n"));
        pods.stop();
    };
    let ((), wrong) = while_doing(|| write(rollouts), work);
    assert_eq!(wrong, [] as [String; 0], "a write was blocked");
    for path in configurations() {
        assert!(!release.is_there(&path), "{path} came back");
    }
    rollouts.apply("anything", &invalid()).accepted().warned(&[]);
    for object in rendered {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        let left = release.kubectl.run(&["-n", &namespace, "get", kind, name, "--ignore-not-found"]).accepted();
        assert_eq!(left.stdout, "", "{} is left", id(&object));
    }
    for account in ACCOUNTS {
        let of_the_namespace = format!("/api/v1/namespaces/{RELEASE}/serviceaccounts/{account}");
        let of_the_cluster = |kind: &str| format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{account}");
        for path in [of_the_namespace, of_the_cluster("clusterroles"), of_the_cluster("clusterrolebindings")] {
            assert!(!release.is_there(&path), "{path} is left");
        }
    }
    assert!(!release.is_there(UNREGISTER_JOB), "the job is left");
    assert!(release.is_there(CRD), "the declarations of others stay");
}
