//! The pods of the Deployment, as processes: what a kubelet starts, with the arguments that the API server has stored and a
//! token of the pods' own `ServiceAccount`.
//!
//! Four things are not as in a cluster, since there is one machine and no network of pods. The ports to listen on are free
//! ones of loopback; with `hostNetwork` they are those of the values, on a [`Node`] of its own for each pod. The mounted token is
//! one of `kubectl create token`, in a kubeconfig. The chart's Service is of type `ExternalName` and leads to loopback; such a
//! Service cannot map its port to another, so that the port in `--service` is the one of the [`Balancer`] that stands for the
//! Service's endpoints.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::RELEASE;
use super::arguments;
use super::lifecycle::Release;
use crate::balancer::{Backend, Balancer};
use crate::process::{Process, Workspace};
use crate::webhook::{binary, listening};
use fixtures::wait::{SETTLED, eventually, for_some};

/// Longer than any `--shutdown-delay` under test, and than what is in flight may take after it.
const GRACE: Duration = Duration::from_secs(30);
/// The pause between two writes of [`while_doing`], which leaves processor time to other tests.
const PACE: Duration = Duration::from_millis(10);

/// `--post-renderer` and its arguments: helm's own means for what a chart has no value for.
pub(super) const ON_LOOPBACK: [&str; 5] = [
    "--post-renderer=sed",
    "--post-renderer-args=-e",
    "--post-renderer-args=s/^  type: ClusterIP$/  type: ExternalName/",
    "--post-renderer-args=-e",
    "--post-renderer-args=s/^  internalTrafficPolicy: Cluster$/  externalName: localhost/",
];

/// All replicas of the Deployment, and the Service in front of them.
pub(super) struct Pods<'r> {
    release: &'r Release,
    balancer: Balancer,
    running: Vec<Pod>,
    started: usize,
    workspace: Workspace,
}

/// One of them.
pub(super) struct Pod {
    process: Process,
    backend: Backend,
}

impl<'r> Pods<'r> {
    /// Starts the replicas of the Deployment at once, and waits until they are ready and found by the Service.
    pub(super) fn start(release: &'r Release) -> Self {
        let mut pods = Self::unready(release);
        pods.found();
        pods
    }

    /// Starts the replicas of the Deployment, and waits until they listen. They need not become ready.
    pub(super) fn unready(release: &'r Release) -> Self {
        let (balancer, workspace) = (Balancer::start(), Workspace::new("pods"));
        let mut pods = Self { release, balancer, running: Vec::new(), started: 0, workspace };
        let replicas = pods.deployment()["spec"]["replicas"].as_u64().unwrap();
        let new: Vec<_> = (0..replicas).map(|_| pods.launch(Node::next(pods.is_on_hosts()))).collect();
        // All of them run before one is waited for.
        for (node, process) in new {
            pods.join(node, process);
        }
        pods
    }

    /// Waits until each is ready, and found by the Service.
    pub(super) fn found(&mut self) {
        let Self { balancer, running, .. } = self;
        for Pod { process, backend } in running {
            let found = eventually(SETTLED, || {
                process.assert_running();
                balancer.has_at(backend.host, backend.port)
            });
            assert!(found, "it never became ready:\n{}", process.log());
        }
    }

    /// Does a rolling update after the Deployment has changed: one pod more, then one less, until all are new.
    pub(super) fn roll_out(&mut self) {
        let strategy = self.deployment()["spec"]["strategy"]["rollingUpdate"].clone();
        assert_eq!(strategy, json!({"maxSurge": 1, "maxUnavailable": 0}));
        let old = std::mem::take(&mut self.running);
        let mut leaving = Vec::new();
        for mut pod in old {
            let (node, new) = self.launch(Node::Pod);
            self.join(node, new);
            self.found();
            pod.process.terminate();
            leaving.push(pod);
        }
        for pod in leaving {
            self.ended(pod);
        }
    }

    /// Does a rolling update where a new pod needs the ports of an old one: one pod less, then one more on its node, until all
    /// are new.
    pub(super) fn roll_out_in_place(&mut self) {
        let strategy = self.deployment()["spec"]["strategy"]["rollingUpdate"].clone();
        assert_eq!(strategy, json!({"maxSurge": 0, "maxUnavailable": 1}));
        for _ in 0..self.running.len() {
            let mut old = self.running.remove(0);
            let node = Node::Host(old.backend.host);
            old.process.terminate();
            self.ended(old);
            let (node, new) = self.launch(node);
            self.join(node, new);
            self.found();
        }
    }

    /// Ends all of them.
    pub(super) fn stop(mut self) {
        for pod in &mut self.running {
            pod.process.terminate();
        }
        for pod in std::mem::take(&mut self.running) {
            self.ended(pod);
        }
    }

    /// The port of the Service.
    pub(super) fn service_port(&self) -> u16 {
        self.balancer.port()
    }

    /// The webhook's port of each.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.running.iter().map(|pod| pod.backend.port).collect()
    }

    /// The address of each, with the webhook's port and the other one.
    pub(super) fn backends(&self) -> Vec<Backend> {
        self.running.iter().map(|pod| pod.backend).collect()
    }

    /// Returns the log of each pod.
    pub(super) fn logs(&self) -> Vec<String> {
        self.running.iter().map(|pod| pod.process.log()).collect()
    }

    fn deployment(&self) -> Value {
        let args = ["-n", RELEASE, "get", "deployment", RELEASE, "-o", "json"];
        self.release.kubectl.run(&args).accepted().json()
    }

    fn is_on_hosts(&self) -> bool {
        self.deployment()["spec"]["template"]["spec"]["hostNetwork"] == true
    }

    fn launch(&mut self, node: Node) -> (Node, Process) {
        let deployment = self.deployment();
        let account = deployment.pointer("/spec/template/spec/serviceAccountName").and_then(Value::as_str).unwrap();
        let kubeconfig = self.release.control_plane.account_kubeconfig(RELEASE, account);
        let mut replaced = 0;
        let mut args = arguments(&deployment).remove(0);
        for arg in &mut args {
            let (flag, value) = arg.split_once('=').unwrap_or((arg, ""));
            *arg = match flag {
                "--bind" | "--ops-bind" => format!("{flag}={}", node.address(value)),
                "--service" => format!("{flag}={}:{}", value.rsplit_once(':').unwrap().0, self.balancer.port()),
                _ => continue,
            };
            replaced += 1;
        }
        assert_eq!(replaced, 3, "the chart gives a pod two addresses and its Service: {args:?}");
        args.push(format!("--kubeconfig={}", kubeconfig.display()));
        self.started += 1;
        let log = self.workspace.path().join(format!("log-{}", self.started));
        (node, Process::start(&binary().unwrap(), &args, &environment(&deployment), &log))
    }

    /// Waits until it listens, and adds it to the Service.
    fn join(&mut self, node: Node, mut process: Process) {
        let ports = for_some(SETTLED, || {
            process.assert_running();
            listening(&process.log())
        });
        let [port, ops_port] = ports.unwrap_or_else(|| panic!("it never listened:\n{}", process.log()));
        let backend = Backend { host: node.host(), port, ops_port };
        self.balancer.add(backend);
        self.running.push(Pod { process, backend });
    }

    /// Waits for the end of a pod that was told to stop.
    fn ended(&self, mut pod: Pod) {
        let status = pod.process.wait_for_exit(GRACE);
        assert!(
            !self.balancer.has_at(pod.backend.host, pod.backend.port),
            "it served for as long as the Service could find it"
        );
        assert!(status.success(), "{status}:\n{}", pod.process.log());
    }
}

/// Where a pod listens.
#[derive(Clone, Copy)]
enum Node {
    /// In a network of its own: on free ports of 127.0.0.1.
    Pod,
    /// In the network of a node, an address of loopback that nothing else listens on: on the ports of its arguments.
    Host(Ipv4Addr),
}

impl Node {
    fn next(is_host: bool) -> Self {
        static NODES: AtomicU8 = AtomicU8::new(1);
        if !is_host {
            return Self::Pod;
        }
        // The number of a process has at most 22 bits, and its addresses are no other process's.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let node = NODES.fetch_add(1, Ordering::Relaxed);
        assert!(high < 64 && node < 3, "there are addresses for two nodes of each process");
        Self::Host(Ipv4Addr::new(127, node * 64 + high, middle, low))
    }

    fn host(self) -> Ipv4Addr {
        match self {
            Self::Pod => Ipv4Addr::LOCALHOST,
            Self::Host(host) => host,
        }
    }

    /// Returns the address to listen on, for the one of an argument.
    fn address(self, argument: &str) -> String {
        match self {
            Self::Pod => "127.0.0.1:0".to_owned(),
            Self::Host(host) => argument.replace("[::]", &host.to_string()),
        }
    }
}

/// Returns the variables of the container.
fn environment(deployment: &Value) -> Vec<(&str, &str)> {
    let variables = deployment.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array);
    variables
        .into_iter()
        .flatten()
        .map(|variable| (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap()))
        .collect()
}

/// Repeats `work` in another thread while `meanwhile` runs, at least once. Returns how often it ran, and its errors.
pub(super) fn while_doing<T>(
    work: impl Fn() -> Result<(), String> + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (T, usize, Vec<String>) {
    use std::sync::atomic::AtomicBool;
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (mut times, mut wrong) = (0, Vec::new());
            loop {
                let last = done.load(Ordering::Relaxed);
                times += 1;
                wrong.extend(work().err());
                if last {
                    return (times, wrong);
                }
                thread::sleep(PACE);
            }
        });
        // Also when `meanwhile` panics: the thread must end.
        let stop = Stop(&done);
        let result = meanwhile();
        drop(stop);
        let (times, wrong) = worker.join().unwrap();
        (result, times, wrong)
    })
}
