//! The release binary: as a webhook in a process of its own, and as a command.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::control_plane::free_ports;
use crate::http::Client;
use crate::kubectl::{self, Output};
use crate::pki::ServingCertificate;
use crate::process::{self, Process, Workspace};
use fixtures::certificates::TestAuthority;

const STARTUP: Duration = Duration::from_secs(30);
const SHUTDOWN: Duration = Duration::from_secs(20);

/// A running webhook. Dropping it kills it.
pub(crate) struct Webhook {
    process: Option<Process>,
    args: Vec<String>,
    authority: Arc<TestAuthority>,
    port: u16,
    ops_port: u16,
    workspace: Workspace,
    /// The arguments of `ulimit`. Empty: no limit.
    open_files: &'static str,
    /// More environment variables.
    envs: Vec<(&'static str, String)>,
}

/// The address and certificates of a webhook, which stay the same over restarts.
pub(crate) struct Endpoint {
    port: u16,
    ca: String,
}

impl Webhook {
    /// Watches the cluster of a kubeconfig.
    pub(crate) fn of_cluster(kubeconfig: &Path, more: &[&str]) -> Result<Self, String> {
        Self::start(["--kubeconfig".as_ref(), kubeconfig.as_os_str()], more)
    }

    /// Watches a cluster and registers itself there, as the Service `kube-unions` of the namespace `kube-unions`, which is to
    /// lead to loopback.
    pub(crate) fn registering(kubeconfig: &Path, more: &[&str]) -> Result<Self, String> {
        let [port] = free_ports();
        let mut webhook = Self::prepare(["--kubeconfig".as_ref(), kubeconfig.as_os_str()], more);
        webhook.args.push(format!("--service=kube-unions/kube-unions:{port}"));
        webhook.port = port;
        webhook.resume()?;
        Ok(webhook)
    }

    /// Another one with the same arguments but for these, on other ports, and with the same certificate.
    pub(crate) fn replica(&self, more: &[&str]) -> Result<Self, String> {
        let workspace = Workspace::new("webhook");
        let name = |arg: &str| arg.split('=').next().map(str::to_owned);
        let kept = self.args.iter().filter(|arg| more.iter().all(|more| name(more) != name(arg)));
        let args = kept.cloned().chain(more.iter().map(|&arg| arg.to_owned())).collect();
        let authority = self.authority.clone();
        let mut webhook =
            Self { process: None, args, authority, port: 0, ops_port: 0, workspace, open_files: "", envs: Vec::new() };
        webhook.resume()?;
        Ok(webhook)
    }

    /// Reads files, and needs no cluster.
    pub(crate) fn of_files(path: &Path, more: &[&str]) -> Result<Self, String> {
        Self::start(["--from".as_ref(), path.as_os_str()], more)
    }

    /// Reads files, and may have so many open: what `ulimit` is told.
    pub(crate) fn with_open_files(path: &Path, open_files: &'static str) -> Result<Self, String> {
        let mut webhook = Self::prepare(["--from".as_ref(), path.as_os_str()], &[]);
        webhook.open_files = open_files;
        webhook.resume()?;
        Ok(webhook)
    }

    /// Watches the cluster of a kubeconfig, and need not become ready.
    pub(crate) fn unready(kubeconfig: &Path, more: &[&str]) -> Result<Self, String> {
        Self::unready_with(kubeconfig, more, &[])
    }

    /// Does the same with these environment variables.
    pub(crate) fn unready_with(
        kubeconfig: &Path,
        more: &[&str],
        envs: &[(&'static str, String)],
    ) -> Result<Self, String> {
        let mut webhook = Self::prepare(["--kubeconfig".as_ref(), kubeconfig.as_os_str()], more);
        webhook.envs = envs.to_vec();
        webhook.process = Some(webhook.launch()?);
        Ok(webhook)
    }

    fn start(source: [&OsStr; 2], more: &[&str]) -> Result<Self, String> {
        let mut webhook = Self::prepare(source, more);
        webhook.resume()?;
        Ok(webhook)
    }

    fn prepare(source: [&OsStr; 2], more: &[&str]) -> Self {
        let workspace = Workspace::new("webhook");
        let authority = TestAuthority::new("kube-unions webhook tests");
        ServingCertificate::issue(&authority, &workspace.path().join("tls"));
        let mut args = vec!["serve".to_owned()];
        args.extend(source.map(|arg| arg.to_string_lossy().into_owned()));
        if !more
            .iter()
            .any(|arg| ["--tls-self-signed", "--tls-secret", "--tls-cert-dir"].iter().any(|it| arg.starts_with(it)))
        {
            args.push(format!("--tls-cert-dir={}", workspace.path().join("tls").display()));
        }
        args.push("--log-format=json".to_owned());
        if !more.iter().any(|arg| arg.starts_with("--shutdown-delay")) {
            // Nothing finds it through endpoints that would have to be taken away first.
            args.push("--shutdown-delay=0s".to_owned());
        }
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        Self {
            process: None,
            args,
            authority: Arc::new(authority),
            port: 0,
            ops_port: 0,
            workspace,
            open_files: "",
            envs: Vec::new(),
        }
    }

    /// Starts it (again), on the ports it had, and waits until it is ready.
    pub(crate) fn resume(&mut self) -> Result<(), String> {
        let mut process = self.launch()?;
        let ops = self.ops();
        process::wait_until_ready("the webhook", STARTUP, &mut [&mut process], || {
            ops.get("/readyz").is_ok_and(|answer| answer.status == 200)
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// Starts it, on the ports it had, and waits until it listens.
    fn launch(&mut self) -> Result<Process, String> {
        let mut args = self.args.clone();
        args.push(format!("--bind=127.0.0.1:{}", self.port));
        args.push(format!("--ops-bind=127.0.0.1:{}", self.ops_port));
        let log = self.workspace.path().join("log");
        let envs = [
            ("NO_COLOR", "1"),
            ("RUST_LOG", "info"),
            ("OPEN_FILES", self.open_files),
            // As in the image.
            ("MALLOC_MMAP_THRESHOLD_", "131072"),
            ("MALLOC_TRIM_THRESHOLD_", "1048576"),
            ("MALLOC_ARENA_MAX", "2"),
        ];
        let envs: Vec<_> = envs.into_iter().chain(self.envs.iter().map(|(name, value)| (*name, &**value))).collect();
        // The program of the image is linked statically, and so loads nothing.
        let preloads = self.envs.iter().any(|(name, _)| *name == "LD_PRELOAD");
        let program = if preloads { PathBuf::from(env!("CARGO_BIN_EXE_kube-unions")) } else { binary()? };
        let mut process = Process::start(&program, &args, &envs, &log);
        if self.ops_port == 0 {
            let [webhook, ops] = fixtures::wait::for_some(STARTUP, || {
                listening(&process.log()).or(process.exit_status().map(|_| [0; 2]))
            })
            .filter(|ports| *ports != [0; 2])
            .ok_or_else(|| format!("the webhook never said where it listens:\n{}", process.log_tail()))?;
            (self.port, self.ops_port) = (webhook, ops);
        }
        Ok(process)
    }

    /// Ends it with SIGTERM and fails unless it ends well.
    pub(crate) fn stop(&mut self) {
        let mut process = self.process.take().expect("a webhook that runs can be stopped");
        process.terminate();
        let status = process.wait_for_exit(SHUTDOWN);
        assert!(status.success(), "the webhook ended with {status}:\n{}", process.log_tail());
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("the webhook runs")
    }

    /// Returns the log of all its runs.
    pub(crate) fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("the webhook runs").pid()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn ops_port(&self) -> u16 {
        self.ops_port
    }

    pub(crate) fn ca(&self) -> &str {
        self.authority.pem()
    }

    /// A client of `/mutate` and `/validate`.
    pub(crate) fn client(&self) -> Client {
        Client::tls(format!("https://127.0.0.1:{}", self.port), self.authority.pem(), None)
    }

    /// A client of `/livez`, `/readyz` and `/metrics`.
    pub(crate) fn ops(&self) -> Client {
        Client::plain(format!("http://127.0.0.1:{}", self.ops_port))
    }

    /// The value of a metric that has no labels.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let metrics = self.ops().get("/metrics").expect("the webhook has metrics");
        let value = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no metric `{name}`:\n{}", metrics.text()))
    }

    /// Returns the number of reviews of `group` in `phase`, from its metrics. Unknown kinds do not count.
    pub(crate) fn reviews(&self, group: &str, phase: &str) -> u64 {
        let metrics = self.ops().get("/metrics").expect("the webhook has metrics");
        metrics
            .text()
            .lines()
            .filter(|line| line.starts_with("kube_unions_admission_reviews_total{"))
            .filter(|line| line.contains(&format!("group=\"{group}\"")) && line.contains(&format!("phase=\"{phase}\"")))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum()
    }

    /// Returns the number of reviews for each outcome, from its metrics.
    pub(crate) fn outcomes(&self) -> BTreeMap<String, u64> {
        let metrics = self.ops().get("/metrics").expect("the webhook has metrics");
        let mut outcomes = BTreeMap::new();
        for line in metrics.text().lines().filter(|line| line.starts_with("kube_unions_admission_reviews_total{")) {
            let count = line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok()).unwrap_or_default();
            let outcome = line.split("outcome=\"").nth(1).and_then(|rest| rest.split('"').next());
            if let Some(outcome) = outcome.filter(|_| count > 0) {
                *outcomes.entry(outcome.to_owned()).or_default() += count;
            }
        }
        outcomes
    }

    /// Returns the client configuration for the API server.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.port, self.authority.pem())
    }

    /// The two configurations that send the objects of `group` here, as a user would write them.
    pub(crate) fn registration(&self, group: &str) -> Value {
        self.endpoint().registration(group)
    }

    /// The two configurations that send here what the rules say.
    pub(crate) fn registration_of(&self, name: &str, rules: &[Value], failure_policy: &str) -> Value {
        registration(self.port, self.authority.pem(), name, rules, failure_policy)
    }
}

impl Endpoint {
    /// A webhook on a port of loopback whose certificate `ca` (PEM) signed.
    pub(crate) fn new(port: u16, ca: &str) -> Self {
        Self { port, ca: ca.to_owned() }
    }

    /// The two configurations that send the objects of `group` there, as a user would write them.
    pub(crate) fn registration(&self, group: &str) -> Value {
        let rule = json!({
            "apiGroups": [group],
            "apiVersions": ["*"],
            "resources": ["*", "*/status"],
            "operations": ["CREATE", "UPDATE"],
        });
        registration(self.port, &self.ca, group, &[rule], "Fail")
    }
}

/// Runs the release binary as a command.
pub(crate) fn kube_unions(args: &[&str], input: &str) -> Output {
    run_program(&binary().unwrap_or_else(|message| panic!("{message}")), args, input)
}

/// Runs a `kube-unions` of another build as a command.
pub(crate) fn run_program(program: &Path, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(args).env("NO_COLOR", "1").env_remove("KUBECONFIG");
    kubectl::run(command, &format!("kube-unions {}", args.join(" ")), input)
}

/// The two configurations, both of this name, that send what the rules say to a port of loopback whose certificate one
/// of `authorities` (PEM) has signed.
pub(crate) fn registration(port: u16, authorities: &str, name: &str, rules: &[Value], failure_policy: &str) -> Value {
    let configuration = |kind: &str, path: &str, more: Value| {
        let mut webhook = json!({
            "name": format!("{path}.{name}"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/{path}"),
                "caBundle": base64(authorities.as_bytes()),
            },
            "rules": rules,
            "failurePolicy": failure_policy,
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 5,
        });
        webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [webhook],
        })
    };
    json!({"apiVersion": "v1", "kind": "List", "items": [
        configuration("MutatingWebhookConfiguration", "mutate", json!({"reinvocationPolicy": "IfNeeded"})),
        configuration("ValidatingWebhookConfiguration", "validate", json!({})),
    ]})
}

/// Returns the path of the release binary.
pub(crate) fn binary() -> Result<PathBuf, String> {
    let path = env::var_os("KUBE_UNIONS_BIN").map_or_else(
        || {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
            target.join("release/kube-unions")
        },
        PathBuf::from,
    );
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("there is no `{}`: run `make build` first, or set KUBE_UNIONS_BIN", path.display()))
    }
}

/// The ports of the webhook and of its operations, from the log line that names them.
pub(crate) fn listening(log: &str) -> Option<[u16; 2]> {
    let event = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|event| event["message"] == "listening")?;
    let port = |field: &str| event[field].as_str()?.rsplit_once(':')?.1.parse().ok();
    Some([port("webhook")?, port("ops")?])
}

/// Standard base64 with padding: a configuration carries its certificates in it.
pub(crate) fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}
