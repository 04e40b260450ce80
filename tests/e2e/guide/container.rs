//! The container of a pod of kube-unions, as a process, and the status that a kubelet reports of it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::logs;
use crate::support::control_plane::ControlPlane;
use crate::support::http::Client;
use crate::support::process::Process;
use crate::support::webhook::{listening, server};
use fixtures::wait::{SOON, for_some};

/// A container that runs or has ended.
pub(super) struct Container {
    process: Process,
    /// The ports of loopback: of the webhook, and of its operations. `None`: it listens nowhere.
    listens: Option<[u16; 2]>,
    /// The ports of the pod's address, in the same order.
    declared: [u16; 2],
    is_told_to_stop: bool,
    address: Ipv4Addr,
    name: String,
    image: String,
    started_at: Value,
    /// The state that the API server knows.
    reported: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unready,
    Ready,
    Succeeded,
    Failed,
}

impl Container {
    /// Starts the only container of a pod, and waits until it listens if it does so. The log is in `folder`.
    pub(super) fn start(pod: &Value, address: Ipv4Addr, control_plane: &ControlPlane, folder: &Path) -> Self {
        let containers = pod["spec"]["containers"].as_array().expect("a pod has containers");
        let [container] = containers.as_slice() else { panic!("one container is expected: {pod}") };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = text(&pod["metadata"]["namespace"]);
        let kubeconfig = control_plane.account_kubeconfig(&namespace, &text(&pod["spec"]["serviceAccountName"]));
        let mut declared = Vec::new();
        let mut args: Vec<String> = container["args"].as_array().into_iter().flatten().map(text).collect();
        for arg in &mut args {
            if let Some((flag @ ("--bind" | "--ops-bind"), value)) = arg.split_once('=') {
                declared.extend(value.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()));
                *arg = format!("{flag}=127.0.0.1:0");
            }
            // The network stops sending to a pod at once.
            if arg.starts_with("--shutdown-delay=") {
                "--shutdown-delay=1s".clone_into(arg);
            }
        }
        args.push(format!("--kubeconfig={}", kubeconfig.display()));
        let variables = container["env"].as_array().into_iter().flatten();
        let envs: Vec<_> = variables.map(|variable| (text(&variable["name"]), text(&variable["value"]))).collect();
        let envs: Vec<_> = envs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let name = text(&container["name"]);
        let log = folder.join(logs::file(&namespace, &text(&pod["metadata"]["name"]), &name));
        // A pod of the same name may have run before.
        let _ = fs::remove_file(&log);
        let mut process = Process::start(&server().unwrap_or_else(|message| panic!("{message}")), &args, &envs, &log);
        let declared = <[u16; 2]>::try_from(declared).ok();
        let listens = declared.map(|_| {
            for_some(SOON, || {
                process.assert_running();
                listening(&process.log())
            })
            .unwrap_or_else(|| panic!("it never listened:\n{}", process.log()))
        });
        Self {
            process,
            listens,
            declared: declared.unwrap_or_default(),
            is_told_to_stop: false,
            address,
            name,
            image: text(&container["image"]),
            started_at: pod["metadata"]["creationTimestamp"].clone(),
            reported: None,
        }
    }

    /// Returns the ports of the pod's address, each with its port of loopback.
    pub(super) fn ports(&self) -> Vec<(u16, u16)> {
        self.listens.into_iter().flat_map(|listens| self.declared.into_iter().zip(listens)).collect()
    }

    /// Returns the port of loopback to which connections to the Service may go.
    pub(super) fn backend(&self) -> Option<u16> {
        let is_backend = self.reported == Some(State::Ready) && !self.is_told_to_stop;
        self.listens.filter(|_| is_backend).map(|[webhook, _]| webhook)
    }

    /// Returns true if it has ended. Otherwise tells it to stop.
    pub(super) fn has_stopped(&mut self) -> bool {
        if self.process.exit_status().is_some() {
            return true;
        }
        if !self.is_told_to_stop {
            self.is_told_to_stop = true;
            self.process.terminate();
        }
        false
    }

    /// Returns the status of the pod if the API server does not know it yet.
    pub(super) fn next_status(&mut self) -> Option<Value> {
        let state = self.state();
        if self.reported == Some(state) {
            return None;
        }
        self.reported = Some(state);
        Some(self.status(state))
    }

    fn state(&mut self) -> State {
        if let Some(status) = self.process.exit_status() {
            return if status.success() { State::Succeeded } else { State::Failed };
        }
        let is_ready = self.listens.is_none_or(|[_, ops]| {
            let answer = Client::plain(format!("http://127.0.0.1:{ops}")).get("/readyz");
            answer.is_ok_and(|answer| answer.is_success())
        });
        if is_ready { State::Ready } else { State::Unready }
    }

    fn status(&self, state: State) -> Value {
        let (phase, exit_code) = match state {
            State::Unready | State::Ready => ("Running", None),
            State::Succeeded => ("Succeeded", Some(0)),
            State::Failed => ("Failed", Some(1)),
        };
        let at = &self.started_at;
        let state_of_container = match exit_code {
            None => json!({"running": {"startedAt": at}}),
            Some(code) => json!({"terminated": {"exitCode": code, "startedAt": at, "finishedAt": at}}),
        };
        let is_ready = state == State::Ready;
        let condition = |kind: &str| {
            let status = if is_ready { "True" } else { "False" };
            json!({"type": kind, "status": status, "lastTransitionTime": at})
        };
        json!({
            "phase": phase,
            "startTime": at,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [condition("ContainersReady"), condition("Ready")],
            "containerStatuses": [{
                "name": self.name, "image": self.image, "imageID": "", "restartCount": 0, "ready": is_ready,
                "started": exit_code.is_none(), "state": state_of_container,
            }],
        })
    }
}
