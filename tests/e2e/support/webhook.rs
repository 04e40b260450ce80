//! The release binary: as a webhook in a process of its own, and as a command.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::control_plane::free_ports;
use crate::support::http::Client;
use crate::support::kubectl::{self, Output};
use crate::support::pki::ServingCertificate;
use crate::support::process::{self, Process, Workspace};
use fixtures::certificates::TestAuthority;

const STARTUP: Duration = Duration::from_secs(30);
const SHUTDOWN: Duration = Duration::from_secs(20);

/// The metric of reviews.
pub(crate) const REVIEWS: &str = "kube_unions_admission_reviews_total";

/// A running webhook. Dropping it kills it.
pub(crate) struct Webhook {
    process: Option<Process>,
    args: Vec<String>,
    authority: Arc<TestAuthority>,
    port: u16,
    ops_port: u16,
    workspace: Workspace,
    /// More environment variables. `OPEN_FILES` has the arguments of `ulimit`.
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
        Self::new("--kubeconfig", kubeconfig, more, &[]).ready()
    }

    /// Watches a cluster and registers itself there, as the Service `kube-unions` of the namespace `kube-unions`, which is to
    /// lead to loopback.
    pub(crate) fn registering(kubeconfig: &Path, more: &[&str]) -> Result<Self, String> {
        let mut webhook = Self::new("--kubeconfig", kubeconfig, more, &[]);
        [webhook.port] = free_ports();
        webhook.args.push(format!("--service=kube-unions/kube-unions:{}", webhook.port));
        webhook.ready()
    }

    /// Another one with the same arguments but for these, on other ports, and with the same certificate.
    pub(crate) fn replica(&self, more: &[&str]) -> Result<Self, String> {
        let name = |arg: &str| arg.split('=').next().map(str::to_owned);
        let kept = self.args.iter().filter(|arg| more.iter().all(|more| name(more) != name(arg)));
        let args = kept.cloned().chain(more.iter().map(|&arg| arg.to_owned())).collect();
        Self::of(args, self.authority.clone(), Workspace::new("webhook"), &[]).ready()
    }

    /// Reads files, and needs no cluster.
    pub(crate) fn of_files(path: &Path, more: &[&str]) -> Result<Self, String> {
        Self::new("--from", path, more, &[]).ready()
    }

    /// Reads files, and may have so many open: what `ulimit` is told.
    pub(crate) fn with_open_files(path: &Path, open_files: &str) -> Result<Self, String> {
        Self::new("--from", path, &[], &[("OPEN_FILES", open_files.to_owned())]).ready()
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
        let mut webhook = Self::new("--kubeconfig", kubeconfig, more, envs);
        webhook.process = Some(webhook.launch()?);
        Ok(webhook)
    }

    fn new(source: &str, path: &Path, more: &[&str], envs: &[(&'static str, String)]) -> Self {
        let workspace = Workspace::new("webhook");
        let authority = TestAuthority::new("kube-unions webhook tests");
        let certificate = workspace.path().join("tls");
        ServingCertificate::issue(&authority, &certificate);
        let mut args = vec!["serve".to_owned(), format!("{source}={}", path.display()), "--log-format=json".to_owned()];
        let is_given = |names: &[&str]| more.iter().any(|arg| names.iter().any(|name| arg.starts_with(name)));
        if !is_given(&["--tls-self-signed", "--tls-secret", "--tls-cert-dir"]) {
            args.push(format!("--tls-cert-dir={}", certificate.display()));
        }
        if !is_given(&["--shutdown-delay"]) {
            // Nothing finds it through endpoints that would have to be taken away first.
            args.push("--shutdown-delay=0s".to_owned());
        }
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        Self::of(args, Arc::new(authority), workspace, envs)
    }

    fn of(
        args: Vec<String>,
        authority: Arc<TestAuthority>,
        workspace: Workspace,
        envs: &[(&'static str, String)],
    ) -> Self {
        Self { process: None, args, authority, port: 0, ops_port: 0, workspace, envs: envs.to_vec() }
    }

    fn ready(mut self) -> Result<Self, String> {
        self.resume()?;
        Ok(self)
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
            // As in the image.
            ("MALLOC_MMAP_THRESHOLD_", "131072"),
            ("MALLOC_TRIM_THRESHOLD_", "1048576"),
            ("MALLOC_ARENA_MAX", "2"),
        ];
        let envs: Vec<_> = envs.into_iter().chain(self.envs.iter().map(|(name, value)| (*name, &**value))).collect();
        // The program of the image is linked statically, and so loads nothing.
        let preloads = self.envs.iter().any(|(name, _)| *name == "LD_PRELOAD");
        let program = if preloads { PathBuf::from(env!("CARGO_BIN_EXE_kube-unions")) } else { server()? };
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

    /// Returns the series of a metric with labels, and their values.
    pub(crate) fn series(&self, name: &str) -> Vec<(String, u64)> {
        let metrics = self.ops().get("/metrics").expect("the webhook has metrics");
        let lines = metrics.text().lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        series.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect()
    }

    /// Returns the number of reviews of `group` in `phase`, from its metrics. Unknown kinds do not count.
    pub(crate) fn reviews(&self, group: &str, phase: &str) -> u64 {
        let labels = [format!("group=\"{group}\""), format!("phase=\"{phase}\"")];
        let series = self.series(REVIEWS).into_iter();
        series.filter(|(series, _)| labels.iter().all(|label| series.contains(label))).map(|(_, count)| count).sum()
    }

    /// Returns the number of reviews for each outcome, from its metrics.
    pub(crate) fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut outcomes = BTreeMap::new();
        for (series, count) in self.series(REVIEWS).into_iter().filter(|(_, count)| *count > 0) {
            let outcome = series.split("outcome=\"").nth(1).and_then(|rest| rest.split('"').next());
            *outcomes.entry(outcome.expect("a review has an outcome").to_owned()).or_default() += count;
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
        self.endpoint().registration_of(name, rules, failure_policy)
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
        self.registration_of(group, &[rule], "Fail")
    }

    /// The two configurations, both of this name, that send there what the rules say.
    pub(crate) fn registration_of(&self, name: &str, rules: &[Value], failure_policy: &str) -> Value {
        let configuration = |kind: &str, path: &str, more: Value| {
            let mut webhook = json!({
                "name": format!("{path}.{name}"),
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/{path}", self.port),
                    "caBundle": base64(self.ca.as_bytes()),
                },
                "rules": rules,
                "failurePolicy": failure_policy,
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 5,
            });
            json_patch::merge(&mut webhook, &more);
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
                "webhooks": [webhook]})
        };
        json!({"apiVersion": "v1", "kind": "List", "items": [
            configuration("MutatingWebhookConfiguration", "mutate", json!({"reinvocationPolicy": "IfNeeded"})),
            configuration("ValidatingWebhookConfiguration", "validate", json!({})),
        ]})
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

/// Returns the path of the command line.
pub(crate) fn binary() -> Result<PathBuf, String> {
    let path = env::var_os("KUBE_UNIONS_BIN").map_or_else(
        || {
            let root = fixtures::files::root();
            let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
            target.join("release/kube-unions")
        },
        PathBuf::from,
    );
    existing(path, "KUBE_UNIONS_BIN")
}

/// Returns the path of the program of the image, which is beside the command line unless a variable names it.
pub(crate) fn server() -> Result<PathBuf, String> {
    const VARIABLE: &str = "KUBE_UNIONS_WEBHOOK_BIN";
    match env::var_os(VARIABLE) {
        Some(path) => existing(path.into(), VARIABLE),
        None => existing(binary()?.with_file_name("kube-unions-webhook"), VARIABLE),
    }
}

fn existing(path: PathBuf, variable: &str) -> Result<PathBuf, String> {
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("there is no `{}`: run `make build` first, or set {variable}", path.display()))
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
