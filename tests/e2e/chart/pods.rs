//! The pods of the Deployment, as processes: what a kubelet starts, with the arguments that the API server has stored and a
//! token of the pods' own `ServiceAccount`.
//!
//! Four things are not as in a cluster, since there is one machine and no network of pods. The ports to listen on are free
//! ones of loopback. The mounted token is one of `kubectl create token`, in a kubeconfig. The chart's Service is of type `ExternalName` and leads to loopback; such a
//! Service cannot map its port to another, so that the port in `--service` is the one of the [`Balancer`] that stands for the
//! Service's endpoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::RELEASE;
use super::arguments;
use super::release::Release;
use crate::balancer::{Backend, Balancer};
use crate::process::{Process, Workspace};
use crate::webhook::{binary, listening};
use fixtures::wait::{SETTLED, eventually, for_some};

/// Longer than any `--shutdown-delay` under test, and than what is in flight may take after it.
const GRACE: Duration = Duration::from_secs(30);
/// The pause between two writes of [`while_doing`], which leaves processor time to other tests.
const PACE: Duration = Duration::from_millis(40);

/// `--post-renderer` and its arguments: helm's own means for what a chart has no value for.
pub(super) const ON_LOOPBACK: [&str; 5] = [
    "--post-renderer=sed",
    "--post-renderer-args=-e",
    "--post-renderer-args=s/^  type: ClusterIP$/  type: ExternalName/",
    "--post-renderer-args=-e",
    "--post-renderer-args=s/^  internalTrafficPolicy: Cluster$/  externalName: localhost/",
];

/// The entries of the configurations while no object is sent to the webhook.
pub(super) const OF_DECLARATIONS: [&str; 2] = ["declarations.kube-unions.dev", "definitions.kube-unions.dev"];

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
        let (balancer, workspace) = (Balancer::start(), Workspace::new("pods"));
        let mut pods = Self { release, balancer, running: Vec::new(), started: 0, workspace };
        let replicas = pods.deployment()["spec"]["replicas"].as_u64().unwrap();
        let new: Vec<_> = (0..replicas).map(|_| pods.launch()).collect();
        // All of them run before one is waited for.
        for process in new {
            pods.join(process);
        }
        pods.found();
        pods
    }

    /// Waits until each is ready, and found by the Service.
    fn found(&mut self) {
        let Self { balancer, running, .. } = self;
        for Pod { process, backend } in running {
            let found = eventually(SETTLED, || {
                process.assert_running();
                balancer.has(backend.port)
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
            let new = self.launch();
            self.join(new);
            self.found();
            pod.process.terminate();
            leaving.push(pod);
        }
        for pod in leaving {
            self.ended(pod);
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

    /// Returns the port of each.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.running.iter().map(|pod| pod.backend.port).collect()
    }

    /// Waits until these are the entries of the configurations.
    #[track_caller]
    pub(super) fn wait_for_entries(&self, wanted: &[&str]) {
        let names = || {
            let entries = self.release.entries();
            let mut names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        assert!(eventually(SETTLED, || names() == wanted), "{:?}\n{}", names(), self.logs().join("\n\n"));
    }

    /// Returns the log of each pod.
    pub(super) fn logs(&self) -> Vec<String> {
        self.running.iter().map(|pod| pod.process.log()).collect()
    }

    fn deployment(&self) -> Value {
        let args = ["-n", RELEASE, "get", "deployment", RELEASE, "-o", "json"];
        self.release.kubectl.run(&args).accepted().json()
    }

    fn launch(&mut self) -> Process {
        let deployment = self.deployment();
        let account = deployment.pointer("/spec/template/spec/serviceAccountName").and_then(Value::as_str).unwrap();
        let kubeconfig = self.release.control_plane.account_kubeconfig(RELEASE, account);
        let mut replaced = 0;
        let mut args = arguments(&deployment).remove(0);
        for arg in &mut args {
            let (flag, value) = arg.split_once('=').unwrap_or((arg, ""));
            *arg = match flag {
                "--bind" | "--ops-bind" => format!("{flag}=127.0.0.1:0"),
                "--service" => format!("{flag}={}:{}", value.rsplit_once(':').unwrap().0, self.balancer.port()),
                _ => continue,
            };
            replaced += 1;
        }
        assert_eq!(replaced, 3, "the chart gives a pod two addresses and its Service: {args:?}");
        args.push(format!("--kubeconfig={}", kubeconfig.display()));
        self.started += 1;
        let log = self.workspace.path().join(format!("log-{}", self.started));
        Process::start(&binary().unwrap(), &args, &[], &log)
    }

    /// Waits until it listens, and adds it to the Service.
    fn join(&mut self, mut process: Process) {
        let ports = for_some(SETTLED, || {
            process.assert_running();
            listening(&process.log())
        });
        let [port, ops_port] = ports.unwrap_or_else(|| panic!("it never listened:\n{}", process.log()));
        let backend = Backend { port, ops_port };
        self.balancer.add(backend);
        self.running.push(Pod { process, backend });
    }

    /// Waits for the end of a pod that was told to stop.
    fn ended(&self, mut pod: Pod) {
        let status = pod.process.wait_for_exit(GRACE);
        assert!(!self.balancer.has(pod.backend.port), "it served for as long as the Service could find it");
        assert!(status.success(), "{status}:\n{}", pod.process.log());
    }
}

/// Repeats `work` in another thread while `meanwhile` runs, at least once. Returns its errors.
pub(super) fn while_doing<T>(
    work: impl Fn() -> Result<(), String> + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (T, Vec<String>) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut wrong = Vec::new();
            loop {
                let last = done.load(Ordering::Relaxed);
                wrong.extend(work().err());
                if last {
                    return wrong;
                }
                thread::sleep(PACE);
            }
        });
        // Also when `meanwhile` panics: the thread must end.
        let stop = Stop(&done);
        let result = meanwhile();
        drop(stop);
        (result, worker.join().unwrap())
    })
}
