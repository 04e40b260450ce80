//! The chart on a cluster with a real node: a kubelet runs its pods and probes them, kube-proxy routes its Service, and the controllers
//! of Kubernetes roll it out.
//!
//! `make e2e-node` starts the cluster, and sets `KUBE_UNIONS_E2E_NODE` to its kubeconfig and `KUBE_UNIONS_E2E_IMAGE` to the image that
//! the node has. Without them these tests are left out. The cluster should be thrown away afterwards: the tests leave kinds and objects
//! behind.

mod disruptions;
mod lifecycle;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::chart::helm::Helm;
use crate::chart::{CHART, RELEASE};
use crate::cluster::{AnyCluster, say};
use crate::kind::Kind;
use crate::kubectl::{Kubectl, Output};
use crate::writers::{Count, Spread, Writers};
use fixtures::wait::{eventually, for_some};

/// The environment variables with the kubeconfig of the cluster and the image on its node.
const KUBECONFIG: &str = "KUBE_UNIONS_E2E_NODE";
const IMAGE: &str = "KUBE_UNIONS_E2E_IMAGE";

/// The deadline of work that the cluster does in the background, far above the usual time. A pod may take its grace period of 30 s.
const SETTLED: Duration = Duration::from_mins(2);

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
        let mut values = values.clone();
        values["image"] = json!({"repository": repository, "tag": tag, "pullPolicy": "Never"});
        // A busy machine may be slow to answer; a test of lost writes counts those that are not answered at all.
        values["timeoutSeconds"] = json!(10);
        this.run(&["install", RELEASE, CHART, "--create-namespace", "--wait"], &values).accepted();
        Some(this)
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

    /// Waits until the endpoints of the Service are these pods and no other.
    fn leads_to(&self, pods: &[Value]) {
        let expected: BTreeSet<_> =
            pods.iter().map(|pod| pod["status"]["podIP"].as_str().unwrap().to_owned()).collect();
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{RELEASE}/endpointslices?labelSelector=kubernetes.io/service-name%3D{RELEASE}"
        );
        let leads = || {
            let slices = self.list(&path);
            let endpoints = slices.iter().filter_map(|slice| slice["endpoints"].as_array()).flatten();
            let addresses = endpoints.filter_map(|endpoint| endpoint["addresses"].as_array()).flatten();
            addresses.map(|address| address.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>() == expected
        };
        assert!(eventually(SETTLED, leads), "the Service never leads to {expected:?} alone: {:#?}", self.list(&path));
    }

    /// Installs a kind whose unions are enforced.
    fn enforced(&self) -> Kind<'static> {
        self.cluster.install("backup")
    }

    /// Starts to write objects of a kind.
    fn writers(&self, kind: &Kind<'_>) -> Writers {
        Writers::start(|| self.cluster.client().clone(), kind.group(), &kind.path(""), Spread::Even)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        // A test that fails leaves the release behind, and the next test installs it again.
        self.run(&["uninstall", RELEASE, "--ignore-not-found", "--wait"], &Value::Null);
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

/// Stops writers, and fails if a write was lost.
#[track_caller]
fn no_write_is_lost(writers: Writers) {
    let count: Count = writers.finish();
    say(&count.to_string());
    assert_eq!(count.failed, 0, "{count}");
    assert_eq!(count.answered, count.sent, "{count}");
    assert!(count.answered > 0, "{count}");
}
