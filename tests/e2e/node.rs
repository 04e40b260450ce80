//! The chart on a cluster with real nodes: kubelets run its pods and probe them, kube-proxy routes its Service, and the controllers
//! of Kubernetes roll it out.
//!
//! `make e2e-node` starts the cluster, and sets `KUBE_UNIONS_E2E_NODE` to its kubeconfig and `KUBE_UNIONS_E2E_IMAGE` to the image that
//! the nodes have. Without them these tests are left out. The cluster should be thrown away afterwards: the tests leave kinds and objects
//! behind.

mod certificates;
mod confinement;
mod disruptions;
mod everyday;
mod garbage;
mod kills;
mod lifecycle;
mod machine;
mod policies;
mod resources;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::chart::helm::Helm;
use crate::chart::{CHART, RELEASE};
use crate::loss::wait_for;
use crate::support::cluster::{AnyCluster, say};
use crate::support::kind::Kind;
use crate::support::kubectl::{Kubectl, Output};
use crate::support::writers::{Count, Spread, Writers};
use fixtures::wait::{eventually, for_some};

/// The environment variables with the kubeconfig of the cluster and the image on its nodes.
const KUBECONFIG: &str = "KUBE_UNIONS_E2E_NODE";
const IMAGE: &str = "KUBE_UNIONS_E2E_IMAGE";

/// The deadline of work that the cluster does in the background, far above the usual time. A pod may take its grace period of 30 s.
const SETTLED: Duration = Duration::from_mins(2);

/// The number of writes before and after an event.
const AROUND: u64 = 500;

/// The namespace of the release, which admits only pods of the restricted profile.
const NAMESPACE: &str = "/api/v1/namespaces/kube-unions";
const RESTRICTED: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: kube-unions
  labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: latest}
";

/// The two webhook configurations.
const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kube-unions",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/kube-unions",
];

/// The release in the cluster, which is uninstalled when this is dropped.
struct Release {
    cluster: &'static AnyCluster,
    kubectl: Kubectl,
    helm: Helm,
    /// A cluster has one installation at a time.
    _alone: MutexGuard<'static, ()>,
}

impl Release {
    /// Installs the chart with values, and waits until helm takes its pods as ready. `None`: these tests are left out.
    fn installed(values: &Value) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        static CLUSTER: OnceLock<Result<AnyCluster, String>> = OnceLock::new();
        let Some(kubeconfig) = env::var_os(KUBECONFIG).map(PathBuf::from) else {
            say(&format!("left out, since {KUBECONFIG} names no kubeconfig (`make e2e-node` does)"));
            return None;
        };
        let image =
            env::var(IMAGE).unwrap_or_else(|_| panic!("{IMAGE} names no image: set it to one that the node has"));
        let (repository, tag) = image.rsplit_once(':').unwrap_or_else(|| panic!("{IMAGE}: `{image}` has no tag"));
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = CLUSTER
            .get_or_init(|| AnyCluster::at(Path::new(&kubeconfig)))
            .as_ref()
            .unwrap_or_else(|message| panic!("{KUBECONFIG}: {message}"));
        let (kubectl, helm) = (cluster.kubectl("release"), Helm::of_cluster(kubeconfig));
        let this = Self { cluster, kubectl, helm, _alone: alone };
        // A namespace that is ending refuses it, and pods of an earlier test would take part in the scheduling.
        assert!(eventually(SETTLED, || this.kubectl.apply(RESTRICTED).succeeded()), "there is no namespace");
        assert!(eventually(SETTLED, || this.all_pods().is_empty()), "{:#?}", this.all_pods());
        let mut values = values.clone();
        values["image"] = json!({"repository": repository, "tag": tag, "pullPolicy": "Never"});
        // A busy machine may be slow to answer; a test of lost writes counts those that are not answered at all.
        values["timeoutSeconds"] = json!(10);
        this.run(&["install", RELEASE, CHART, "--wait"], &values).accepted();
        Some(this)
    }

    /// Upgrades the release, changes these values, and waits until helm takes its pods as ready.
    fn upgrade(&self, values: &Value) {
        self.run(&["upgrade", RELEASE, CHART, "--reuse-values", "--wait"], values).accepted();
    }

    /// Runs helm in the release's namespace.
    fn run(&self, args: &[&str], values: &Value) -> Output {
        self.helm.run(&[args, &["--namespace", RELEASE, "--timeout", "180s"]].concat(), values)
    }

    /// Returns the objects of a collection in the release's namespace.
    fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.cluster.client().get(path).expect("the API server answers");
        assert!(answer.is_success(), "{path}: {answer:?}");
        answer.body["items"].as_array().expect("a collection has items").clone()
    }

    /// Returns the pods of the Deployment, with those that are ending.
    fn all_pods(&self) -> Vec<Value> {
        self.list(&format!("/api/v1/namespaces/{RELEASE}/pods?labelSelector=app.kubernetes.io/name%3D{RELEASE}"))
    }

    /// Waits until the Deployment has exactly two pods, both ready, and returns them.
    fn two_pods(&self) -> Vec<Value> {
        let two = || Some(self.all_pods()).filter(|pods| pods.len() == 2 && pods.iter().all(is_ready));
        for_some(SETTLED, two).unwrap_or_else(|| panic!("there are never two pods: {:#?}", self.all_pods()))
    }

    /// Waits until the ready endpoints of the Service are these pods and no other.
    fn leads_to(&self, pods: &[Value]) {
        let expected: BTreeSet<_> =
            pods.iter().map(|pod| pod["status"]["podIP"].as_str().unwrap().to_owned()).collect();
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{RELEASE}/endpointslices?labelSelector=kubernetes.io/service-name%3D{RELEASE}"
        );
        let leads = || {
            let slices = self.list(&path);
            let endpoints = slices.iter().filter_map(|slice| slice["endpoints"].as_array()).flatten();
            let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
            let addresses = ready.filter_map(|endpoint| endpoint["addresses"].as_array()).flatten();
            addresses.map(|address| address.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>() == expected
        };
        assert!(eventually(SETTLED, leads), "the Service never leads to {expected:?} alone: {:#?}", self.list(&path));
    }

    /// Returns a pod as it is now. `None`: there is none.
    fn pod(&self, pod: &Value) -> Option<Value> {
        let name = pod["metadata"]["name"].as_str().expect("pods have names");
        let answer = self.cluster.client().get(&format!("{NAMESPACE}/pods/{name}")).expect("the API server answers");
        answer.is_success().then_some(answer.body)
    }

    /// Waits until a pod is ready whose container has been started again so often.
    fn started_again(&self, pod: &Value, times: u64) -> Value {
        let again = || {
            let pod = self.pod(pod).filter(is_ready)?;
            (pod["status"]["containerStatuses"][0]["restartCount"] == times).then_some(pod)
        };
        for_some(SETTLED, again).unwrap_or_else(|| panic!("never started again: {:#?}", self.pod(pod)))
    }

    /// Returns true if there is an object.
    fn is_there(&self, path: &str) -> bool {
        match self.cluster.client().get(path).expect("the API server answers").status {
            200 => true,
            404 => false,
            status => panic!("{path}: {status}"),
        }
    }

    /// Installs a kind whose unions are enforced.
    fn enforced(&self) -> Kind<'static> {
        self.cluster.install("backup")
    }

    /// Starts to write objects of a kind, and returns when there have been some writes.
    fn writers(&self, kind: &Kind<'_>) -> Writers {
        let writers = Writers::start(|| self.cluster.client().clone(), kind.group(), &kind.path(""), Spread::Even);
        wait_for(&writers, AROUND);
        writers
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.run(&["uninstall", RELEASE, "--ignore-not-found", "--wait"], &Value::Null);
        self.kubectl.run(&["uncordon", "--selector=kubernetes.io/os=linux"]);
    }
}

/// Returns the names of objects.
fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().expect("objects have names").to_owned()).collect()
}

/// Returns true for a pod that is ready and stays.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready =
        conditions.filter(|condition| condition["type"] == "Ready").any(|condition| condition["status"] == "True");
    ready && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Lets writers go on for a while, stops them, and fails if a write was lost.
#[track_caller]
fn no_write_is_lost(what: &str, writers: Writers) {
    wait_for(&writers, AROUND);
    let count: Count = writers.finish();
    say(&format!("{what}: {count}"));
    assert_eq!(count.failed, 0, "{what}: {count}");
    assert_eq!(count.answered, count.sent, "{what}: {count}");
}
