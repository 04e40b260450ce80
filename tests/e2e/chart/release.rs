//! A release on a real API server, and its hooks.
//!
//! No node runs the pods. The tests stand in for one where helm waits for a hook: they run its command, with its arguments
//! and with the token of its `ServiceAccount`, and report how it ended.

use std::thread;

use serde_json::{Value, json};

use super::helm::Helm;
use super::pods::ON_LOOPBACK;
use super::{CHART, RELEASE, arguments};
use crate::cluster::is_left_out;
use crate::control_plane::ControlPlane;
use crate::http::Answer;
use crate::kubectl::{Kubectl, Output};
use crate::lending::Lent;
use crate::webhook::kube_unions;
use fixtures::wait::{SETTLED, for_some};

/// The accounts of the chart: of the webhook, and of its three hooks.
pub(super) const ACCOUNTS: [&str; 4] =
    ["kube-unions", "kube-unions-crds", "kube-unions-verify", "kube-unions-unregister"];

/// The Jobs that helm runs before installing and upgrading, and before uninstalling.
pub(super) const CRDS_JOB: &str = "/apis/batch/v1/namespaces/kube-unions/jobs/kube-unions-crds";
pub(super) const UNREGISTER_JOB: &str = "/apis/batch/v1/namespaces/kube-unions/jobs/kube-unions-unregister";

/// For an installation or an upgrade whose Job no node runs.
const NO_NODE: &str = "--no-hooks";

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

    /// `helm install`, without the Job of the CRD.
    pub(super) fn install(&self, values: &Value) -> Output {
        let install = ["install", RELEASE, CHART, "--create-namespace", NO_NODE];
        self.helm(&[&install, &ON_LOOPBACK[..]].concat(), values).accepted()
    }

    /// `helm upgrade --set`, without the Job of the CRD.
    pub(super) fn set(&self, value: &str) {
        let upgrade = ["upgrade", RELEASE, CHART, "--reuse-values", NO_NODE, "--set", value];
        self.helm(&[&upgrade, &ON_LOOPBACK[..]].concat(), &Value::Null).accepted();
    }

    /// Runs helm and plays the node: runs the pod or job at `path` that helm waits for, and reports how it ended.
    /// Returns the pod's output and helm's.
    pub(super) fn helm_with_a_node(&self, path: &str, args: &[&str]) -> (Output, Output) {
        thread::scope(|scope| {
            let helm = scope.spawn(|| self.helm(&[args, &["--timeout=60s"]].concat(), &Value::Null));
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

    /// `helm uninstall`, with its hook. Returns the output of the hook's command.
    pub(super) fn uninstall(&self) -> Output {
        let (unregistered, uninstalled) = self.helm_with_a_node(UNREGISTER_JOB, &["uninstall", RELEASE]);
        uninstalled.accepted();
        unregistered.accepted()
    }

    /// Returns the entries of the existing configurations.
    pub(super) fn entries(&self) -> Vec<Value> {
        let client = self.control_plane.client();
        let of = |path: &str| client.get(path).unwrap().body["webhooks"].as_array().cloned().unwrap_or_default();
        configurations().iter().flat_map(|path| of(path)).collect()
    }

    pub(super) fn is_there(&self, path: &str) -> bool {
        match self.control_plane.client().get(path).unwrap().status {
            200 => true,
            404 => false,
            status => panic!("{path}: {status}"),
        }
    }
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

/// Returns the paths of the two webhook configurations.
pub(super) fn configurations() -> [String; 2] {
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
        .map(|plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions"))
}
