//! A cluster on which a chart can be installed as on any other: an API server, the controllers that make pods of Deployments and Jobs,
//! and a node that runs the pods.
//!
//! The node plays a kubelet for pods of kube-unions. A pod's container is a process of the program under test, with the arguments that
//! the API server has stored, and with a token of the pod's own `ServiceAccount` in a kubeconfig. It listens on free ports of loopback,
//! which the [`Network`] finds behind the pod's address. No image is pulled.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::container::Container;
use super::logs;
use super::network::Network;
use crate::support::background::Background;
use crate::support::cluster::{is_left_out, say};
use crate::support::control_plane::ControlPlane;
use crate::support::lending::Lent;
use crate::support::process::{Process, Workspace};

/// The time between two looks at the pods.
const PERIOD: Duration = Duration::from_millis(200);

const CONTROLLERS: &str = "deployment-controller,replicaset-controller,job-controller,garbage-collector-controller,\
                           namespace-controller,resourcequota-controller";

const NAME: &str = "node-1";
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const KUBELET: u16 = 10250;

/// A running cluster with one node. Dropping it stops all of it.
pub(crate) struct ClusterWithNode {
    // Fields are dropped in this order: the pods first.
    _kubelet: Background,
    _controllers: Process,
    control_plane: Arc<Lent>,
}

/// A node, and the pods that it runs, by uid.
struct Node {
    control_plane: Arc<Lent>,
    network: Network,
    folder: Workspace,
    running: BTreeMap<String, Container>,
    started: u8,
}

impl ClusterWithNode {
    /// Starts a cluster whose API server has more flags. `None`: these tests are skipped, or there is no kube-controller-manager.
    pub(crate) fn start(flags: &[String]) -> Option<Self> {
        if is_left_out() {
            return None;
        }
        let folder = Workspace::new("node");
        let network = Network::start(&folder);
        let flags = [flags, &[network.flag()]].concat();
        let control_plane = ControlPlane::start_bare(&flags).unwrap_or_else(|message| panic!("{message}"));
        let Some(controllers) = control_plane.start_controllers(CONTROLLERS) else {
            say("no kube-controller-manager beside the API server: that the chart can be installed IS NOT TESTED; \
                 `tests/controlplane/assets.sh controller-manager` builds it");
            return None;
        };
        let control_plane = Arc::new(control_plane);
        network.route((ADDRESS, KUBELET), logs::serve(&network.runtime, folder.path()));
        let mut node =
            Node { control_plane: Arc::clone(&control_plane), network, folder, running: BTreeMap::new(), started: 0 };
        node.join();
        let kubelet = Background::start([move || {
            node.sync();
            thread::sleep(PERIOD);
        }]);
        Some(Self { _kubelet: kubelet, _controllers: controllers, control_plane })
    }

    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }
}

impl Node {
    /// Creates the Node, with the address at which the API server finds the logs.
    fn join(&self) {
        self.send("POST", "/api/v1/nodes", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}));
        let endpoints = json!({"kubeletEndpoint": {"Port": KUBELET}});
        let addresses = json!([{"type": "InternalIP", "address": ADDRESS}]);
        let status = json!({"status": {"addresses": addresses, "daemonEndpoints": endpoints}});
        self.send("PATCH", &format!("/api/v1/nodes/{NAME}/status"), &status);
    }

    /// Looks at every pod once.
    fn sync(&mut self) {
        let Ok(pods) = self.control_plane.client().get("/api/v1/pods") else { return };
        for pod in pods.body["items"].as_array().into_iter().flatten() {
            self.sync_pod(pod);
            // A pod that was told to stop serves for a second more.
            self.network.set_backends(self.running.values().filter_map(Container::backend).collect());
        }
    }

    fn sync_pod(&mut self, pod: &Value) {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name, uid) = (text("/metadata/namespace"), text("/metadata/name"), text("/metadata/uid"));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        if pod["metadata"]["deletionTimestamp"].is_string() {
            if self.running.get_mut(uid).is_none_or(Container::has_stopped) {
                self.running.remove(uid);
                let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
                self.send("DELETE", &path, &now);
            }
            return;
        }
        let Some(container) = self.running.get_mut(uid) else {
            if text("/status/phase") == "Pending" {
                self.run(pod, &path, name, uid);
            }
            return;
        };
        if let Some(status) = container.next_status() {
            self.send("PATCH", &format!("{path}/status"), &json!({"status": status}));
        }
    }

    /// Starts a pod.
    fn run(&mut self, pod: &Value, path: &str, name: &str, uid: &str) {
        let target = json!({"kind": "Node", "name": NAME});
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
        if !self.send("POST", &format!("{path}/binding"), &binding) {
            return;
        }
        self.started += 1;
        let address = Ipv4Addr::new(10, 1, 1, self.started);
        let container = Container::start(pod, address, &self.control_plane, self.folder.path());
        for (port, on_loopback) in container.ports() {
            self.network.route((address, port), on_loopback);
        }
        self.running.insert(uid.to_owned(), container);
    }

    /// Sends a change. Returns false if the object has gone or has changed meanwhile.
    fn send(&self, method: &str, path: &str, body: &Value) -> bool {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        match self.control_plane.client().send(method, path, content_type, body.to_string().as_bytes()) {
            Ok(answer) if matches!(answer.status, 404 | 409) => false,
            Ok(answer) => {
                assert!(answer.is_success(), "{method} {path}: {answer:?}");
                true
            }
            Err(error) => panic!("{error}"),
        }
    }
}
