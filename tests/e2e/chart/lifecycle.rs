//! A release on a real API server: installed, tried, changed, rolled back, uninstalled.
//!
//! No node runs the pods. The tests stand in for one where helm waits for a hook: they run its command, with its arguments
//! and with the token of its `ServiceAccount`, and report how it ended.

use std::thread;

use serde_json::{Value, json};

use super::helm::Helm;
use super::{CHART, RELEASE, arguments, id};
use crate::cluster::is_left_out;
use crate::control_plane::ControlPlane;
use crate::http::{Answer, Client};
use crate::kind::documents;
use crate::kubectl::{Kubectl, Output};
use crate::lending::Lent;
use crate::webhook::{Webhook, kube_unions};
use fixtures::wait::{SETTLED, eventually, for_some};

/// The accounts of the chart: of the webhook, and of its three hooks.
pub(super) const ACCOUNTS: [&str; 4] =
    ["kube-unions", "kube-unions-crds", "kube-unions-verify", "kube-unions-unregister"];

/// The Job that helm runs before installing and upgrading.
pub(super) const CRDS_JOB: &str = "/apis/batch/v1/namespaces/kube-unions/jobs/kube-unions-crds";

/// For an installation or an upgrade whose Job no node runs.
pub(super) const NO_NODE: &str = "--no-hooks";

/// A bare cluster with helm at hand.
pub(super) struct Release {
    pub(super) control_plane: Lent,
    pub(super) kubectl: Kubectl,
    helm: Helm,
}

impl Release {
    /// Nothing is installed yet.
    pub(super) fn new() -> Option<Self> {
        Self::with(&[])
    }

    /// The same, on an API server with more flags.
    pub(super) fn with(flags: &[String]) -> Option<Self> {
        if is_left_out() {
            return None;
        }
        let control_plane = ControlPlane::start_bare(flags).unwrap_or_else(|message| panic!("{message}"));
        let kubectl = control_plane.kubectl("release");
        let helm = Helm::of_cluster(control_plane.admin_kubeconfig());
        Some(Self { control_plane, kubectl, helm })
    }

    pub(super) fn helm(&self, args: &[&str], values: &Value) -> Output {
        self.helm.run(&[args, &["--namespace", RELEASE]].concat(), values)
    }

    pub(super) fn install(&self, values: &Value) -> Output {
        self.helm(&["install", RELEASE, CHART, "--create-namespace", NO_NODE], values).accepted()
    }

    /// Gives the account of a hook its rights, as helm does when the hook's moment has come.
    pub(super) fn prepare_hook(&self, event: &str) {
        let hooks = documents(&self.helm(&["get", "hooks", RELEASE], &Value::Null).accepted().stdout);
        let of_the_event = |hook: &Value| hook["metadata"]["annotations"]["helm.sh/hook"] == event;
        let runs = |hook: &Value| matches!(hook["kind"].as_str(), Some("Job" | "Pod"));
        let hooks: Vec<_> = hooks.into_iter().filter(|hook| of_the_event(hook) && !runs(hook)).collect();
        assert_eq!(hooks.len(), 3, "an account, a role and a binding for {event}");
        self.kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": hooks}).to_string()).accepted();
    }

    /// Runs helm and plays the node: runs the pod or job at `path` that helm waits for, and reports how it ended.
    /// Returns the pod's output and helm's.
    pub(super) fn helm_with_a_node(&self, path: &str, args: &[&str]) -> (Output, Output) {
        self.helm_with_values_and_a_node(path, args, &Value::Null)
    }

    /// The same, with values.
    pub(super) fn helm_with_values_and_a_node(&self, path: &str, args: &[&str], values: &Value) -> (Output, Output) {
        thread::scope(|scope| {
            let helm = scope.spawn(|| self.helm(&[args, &["--timeout=60s"]].concat(), values));
            let client = self.control_plane.client();
            // An ended pod is left from an earlier hook.
            let new = |object: &Value| match object["kind"].as_str() {
                Some("Job") => object["status"]["conditions"].is_null(),
                _ => object["status"]["phase"] == "Pending",
            };
            let object = for_some(SETTLED, || {
                assert!(!helm.is_finished(), "helm did not wait for {path}");
                client.get(path).ok().filter(Answer::is_success).map(|answer| answer.body).filter(new)
            });
            let object = object.unwrap_or_else(|| panic!("helm never created {path}"));
            let account =
                object.pointer("/spec/template/spec").unwrap_or(&object["spec"])["serviceAccountName"].as_str();
            let kubeconfig = self.control_plane.account_kubeconfig(RELEASE, account.unwrap());
            let mut args = arguments(&object).remove(0);
            args.push(format!("--kubeconfig={}", kubeconfig.display()));
            let done = kube_unions(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
            let status = json!({"status": status(object["kind"] == "Job", done.succeeded())}).to_string();
            let path = format!("{path}/status");
            let reported = client.send("PATCH", &path, "application/merge-patch+json", status.as_bytes()).unwrap();
            assert!(reported.is_success(), "{reported:?}");
            (done, helm.join().unwrap())
        })
    }

    /// The arguments of the webhook's pods as they are now.
    fn webhook_args(&self) -> Vec<String> {
        arguments(&self.kubectl.run(&["-n", RELEASE, "get", "deployment", RELEASE, "-o", "json"]).accepted().json())
            .remove(0)
    }

    pub(super) fn is_there(&self, path: &str) -> bool {
        match self.control_plane.client().get(path).unwrap().status {
            200 => true,
            404 => false,
            status => panic!("{path}: {status}"),
        }
    }
}

#[test]
fn a_release_is_installed_tried_changed_rolled_back_and_uninstalled() {
    let Some(release) = Release::new() else { return };
    let installed = release.install(&json!({"presets": {"strategies": true}, "helmTest": {"timeout": "10s"}}));
    assert!(installed.stdout.contains("helm test kube-unions -n kube-unions --logs"), "{}", installed.stdout);
    let emergency = installed.stdout.find("kubectl delete clusterrolebinding kube-unions-registration").unwrap();
    let after = "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration kube-unions";
    assert!(emergency < installed.stdout.find(after).unwrap(), "the order matters:\n{}", installed.stdout);
    release.kubectl.run(&["get", "uniondeclaration", "deployment-strategy"]).accepted();
    for (_, path) in configurations() {
        assert!(!release.is_there(&path), "the chart itself registers nothing");
    }

    // The webhook has its rights: it reads, sets the declaration's condition, and serves.
    let kubeconfig = release.control_plane.account_kubeconfig(RELEASE, RELEASE);
    let mut webhook = Webhook::of_cluster(&kubeconfig, &[]).unwrap();
    let accepted = || {
        let args = ["get", "uniondeclaration", "deployment-strategy", "-o", "jsonpath={.status.conditions[0].status}"];
        release.kubectl.run(&args).accepted().stdout == "True"
    };
    assert!(eventually(SETTLED, accepted), "the declaration is in force:\n{}", webhook.log());

    // Without a registration, `verify` fails; with one it succeeds.
    let pod = format!("/api/v1/namespaces/{RELEASE}/pods/kube-unions-verify");
    let (verified, test) = release.helm_with_a_node(&pod, &["test", RELEASE]);
    assert_eq!(verified.code, Some(1), "{verified:#?}");
    test.refused("kube-unions-verify");
    release.kubectl.apply(&webhook.registration("verify.kube-unions.dev").to_string()).accepted();
    let (verified, test) = release.helm_with_a_node(&pod, &["test", RELEASE]);
    assert_eq!(verified.stdout.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{verified:#?}");
    assert!(test.accepted().stdout.contains("Phase:          Succeeded"));
    assert!(release.is_there(&pod), "the pod stays, for its log");
    release
        .kubectl
        .run(&["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "verify.kube-unions.dev"])
        .accepted();

    // Changes, and back.
    release
        .helm(
            &["upgrade", RELEASE, CHART, "--reset-then-reuse-values", NO_NODE],
            &json!({"enforcement": "off", "replicas": 3}),
        )
        .accepted();
    assert!(release.webhook_args().contains(&"--enforcement=off".to_owned()));
    release.helm(&["rollback", RELEASE, "1"], &Value::Null).accepted();
    assert!(release.webhook_args().contains(&"--enforcement=webhook".to_owned()));
    let history = release.helm(&["history", RELEASE, "-o", "json"], &Value::Null).accepted().json();
    assert_eq!(history.as_array().unwrap().len(), 3);

    // Switched off in an emergency, and on again.
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-unions-registration";
    release.kubectl.run(&["delete", "clusterrolebinding", "kube-unions-registration"]).accepted();
    release.helm(&["upgrade", RELEASE, CHART, "--reuse-values", NO_NODE], &Value::Null).accepted();
    assert!(release.is_there(binding), "an upgrade puts the binding back");

    // It may write its own registration and no other.
    let account = release.control_plane.account_client(RELEASE, RELEASE);
    for (kind, path) in configurations() {
        // The API server needs a moment to read its own rules.
        assert!(eventually(SETTLED, || apply(&account, kind, &path) == 201), "{path}");
        assert_eq!(apply(&account, kind, &path), 200, "{path}");
        assert_eq!(apply(&account, kind, &path.replace("/kube-unions", "/other")), 403);
        assert_eq!(account.delete(&path).unwrap().status, 403, "{path}");
    }

    let rendered = documents(&release.helm(&["get", "manifest", RELEASE], &Value::Null).accepted().stdout);
    let job = format!("/apis/batch/v1/namespaces/{RELEASE}/jobs/kube-unions-unregister");
    let (unregistered, uninstalled) = release.helm_with_a_node(&job, &["uninstall", RELEASE]);
    unregistered.accepted();
    uninstalled.accepted();
    for (kind, path) in configurations() {
        assert!(!release.is_there(&path), "nothing is registered any more");
        assert!(
            matches!(apply(&account, kind, &path), 401 | 403),
            "and the webhook, which still runs, can't change that"
        );
    }
    webhook.process().assert_running();
    for object in rendered {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        let left = release.kubectl.run(&["-n", &namespace, "get", kind, name, "--ignore-not-found"]).accepted();
        assert_eq!(left.stdout, "", "{} is left", id(&object));
    }
    for account in ACCOUNTS {
        let path = format!("/api/v1/namespaces/{RELEASE}/serviceaccounts/{account}");
        assert!(!release.is_there(&path), "{account} is left");
        for kind in ["clusterroles", "clusterrolebindings"] {
            assert!(
                !release.is_there(&format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{account}")),
                "{account} is left"
            );
        }
    }
    assert!(!release.is_there(&job), "the job is left");
    release.kubectl.run(&["get", "crd", "uniondeclarations.kube-unions.dev"]).accepted();
}

/// Returns the status of an ended pod or job.
fn status(job: bool, succeeded: bool) -> Value {
    const NOW: &str = "2026-01-01T00:00:00Z";
    if !job {
        return json!({"phase": if succeeded { "Succeeded" } else { "Failed" }});
    }
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": NOW, "reason": "Tests"});
    if succeeded {
        let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
        json!({"startTime": NOW, "completionTime": NOW, "succeeded": 1, "conditions": conditions})
    } else {
        json!({"startTime": NOW, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]})
    }
}

/// Kind and path of the two webhook configurations.
pub(super) fn configurations() -> [(&'static str, String); 2] {
    let path = |plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions");
    [
        ("MutatingWebhookConfiguration", path("mutatingwebhookconfigurations")),
        ("ValidatingWebhookConfiguration", path("validatingwebhookconfigurations")),
    ]
}

/// Server-side apply of an empty configuration; the HTTP status.
fn apply(client: &Client, kind: &str, path: &str) -> u16 {
    let name = path.rsplit('/').next().unwrap();
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    let path = format!("{path}?fieldManager=kube-unions&force=true");
    client.send("PATCH", &path, "application/apply-patch+yaml", object.to_string().as_bytes()).unwrap().status
}
