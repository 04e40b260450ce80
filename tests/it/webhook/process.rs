//! `kube-unions serve` as a process: its log, its signals, and its errors at the start.

use super::wire::{Answer, Nobody, Request, Wire, review, trusting};
use crate::cli::terminal::open_terminal;
use clap::ValueEnum;
use fixtures::terminal::{is_raw, without_styles};
use fixtures::{crds, reviews};
use kube_unions::supervision::ServeTask;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;

const BINARY: &str = env!("CARGO_BIN_EXE_kube-unions");

/// Returns a directory with one CRD that declares a union in its schema.
fn definitions() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"a": text, "b": text},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let crd = crds::crd("nobody.example", "Stranger", &[crds::version("v1", &schema)]);
    std::fs::write(directory.path().join("crd.yaml"), crd.to_string()).unwrap();
    directory
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("serve").args(arguments);
    if !arguments.contains(&"--log-format") {
        command.args(["--log-format", "json"]);
    }
    if !arguments.contains(&"--ops-bind") {
        command.args(["--ops-bind", "127.0.0.1:0"]);
    }
    command
        .env("TMPDIR", directory)
        .env("HOME", directory)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A running webhook. It is killed when dropped.
pub(super) struct Process {
    child: Child,
    /// A thread reads the log all the time, because a full pipe would block the webhook.
    log: mpsc::IntoIter<String>,
    pub(super) webhook: SocketAddr,
    ops: SocketAddr,
    pub(super) ca_file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Process {
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts it with these environment variables.
    pub(super) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let directory = definitions();
        let from = directory.path().to_str().unwrap();
        let mut arguments = arguments.to_vec();
        arguments.extend(["--bind", "127.0.0.1:0", "--from", from, "--tls-self-signed"]);
        let mut child = command(directory.path(), &arguments).envs(variables.iter().copied()).spawn().unwrap();
        let (line, log) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().try_for_each(|read| line.send(read.unwrap())));
        let log = log.into_iter();
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut this =
            Self { child, log, webhook: nowhere, ops: nowhere, ca_file: PathBuf::new(), _directory: directory };
        this.ca_file = this.logged("self-signed certificate")["ca"].as_str().unwrap().into();
        let listening = this.logged("listening");
        this.webhook = listening["webhook"].as_str().unwrap().parse().unwrap();
        this.ops = listening["ops"].as_str().unwrap().parse().unwrap();
        this
    }

    /// Waits for the next line with this message.
    pub(super) fn logged(&mut self, message: &str) -> Value {
        self.log
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line).unwrap())
            .find(|line| line["message"] == message)
            .unwrap_or_else(|| panic!("`{message}` is not logged"))
    }

    pub(super) async fn connect(&self) -> Wire {
        Wire::tls(self.webhook, trusting(&self.ca_file, None)).await.unwrap()
    }

    pub(super) async fn send(&self, request: &Request) -> Answer {
        self.connect().await.exchange(request).await
    }

    pub(super) fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    fn ended(self) -> ExitStatus {
        self.ended_saying().0
    }

    /// Waits for the exit. Returns the status and the rest of the log.
    pub(super) fn ended_saying(mut self) -> (ExitStatus, String) {
        let rest: Vec<String> = self.log.by_ref().collect();
        (self.child.wait().unwrap(), rest.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn it_serves_the_unions_of_files_and_logs_a_denial_without_values() {
    let mut process = Process::start(&[]);
    let ready = Wire::plain(process.ops).await.exchange(&Request::get("/readyz")).await;
    assert_eq!(ready.code, 200, "{ready:?}");
    let both =
        review("u-9").replace(r#""metadata":{"name":"x"}"#, r#""metadata":{"name":"x"},"spec":{"a":"s3cret","b":"2"}"#);
    let answer = process.send(&Request::post("/validate", both)).await;
    assert_eq!(answer.json()["response"]["allowed"], false, "{answer:?}");
    let line = process.logged("denied");
    assert_eq!(line["uid"], "u-9");
    assert_eq!(line["group"], "nobody.example");
    assert_eq!(line["kind"], "Stranger");
    assert_eq!(line["operation"], "CREATE");
    assert!(line["paths"].as_str().unwrap().contains("spec."), "{line}");
    assert!(!line.to_string().contains("s3cret"), "{line}");

    let metrics = Wire::plain(process.ops).await.exchange(&Request::get("/metrics")).await.body;
    let denied = "kube_unions_admission_reviews_total{group=\"nobody.example\",kind=\"Stranger\",operation=\"CREATE\",\
                  phase=\"validate\",outcome=\"denied\"} 1\n";
    for line in [denied, "kube_unions_catalog_unions{source=\"schema\"} 1\n", "kube_unions_declaration_faults 0\n"] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

#[tokio::test]
async fn the_first_signal_stops_it_gracefully() {
    for signal in ["-TERM", "-INT"] {
        let mut process = Process::start(&["--shutdown-delay", "0"]);
        assert_eq!(process.send(&Request::post("/mutate", review("u"))).await.code, 200);
        process.signal(signal);
        process.logged("stopped");
        assert_eq!(process.ended().code(), Some(0), "{signal}");
    }
}

#[tokio::test]
async fn the_second_signal_stops_it_at_once() {
    let mut process = Process::start(&["--shutdown-delay", "10m"]);
    process.signal("-TERM");
    process.logged("stopping");
    let answer = process.send(&Request::post("/mutate", review("u"))).await;
    assert_eq!((answer.code, answer.header("connection")), (200, Some("close")));
    process.signal("-TERM");
    assert_eq!(process.ended().code(), Some(2));
}

#[test]
fn an_error_at_the_start_says_why() {
    let directory = definitions();
    let from = directory.path().to_str().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let missing = directory.path().join("missing").display().to_string();
    let listen = format!("cannot listen on `{address}`: ");
    let signed = "--tls-self-signed";
    // Key pairs: the first with the other's key, one whose key is a directory, one without a key, and one without a certificate.
    let pairs = directory.path().join("pairs");
    let pairs = pairs.to_str().unwrap();
    let [one, two, three, four, five] = ["one", "two", "three", "four", "five"].map(|name| format!("{pairs}/{name}"));
    for dir in [&one, &two, &three, &four, &five] {
        assert!(Command::new(BINARY).args(["certs", "--dir", dir]).stderr(Stdio::null()).status().unwrap().success());
    }
    std::fs::copy(format!("{two}/tls.key"), format!("{one}/tls.key")).unwrap();
    std::fs::remove_file(format!("{three}/tls.key")).unwrap();
    std::fs::create_dir(format!("{three}/tls.key")).unwrap();
    std::fs::write(format!("{four}/tls.key"), "nonsense").unwrap();
    std::fs::write(format!("{five}/tls.crt"), "").unwrap();
    let unknown = unreachable_cluster(directory.path(), "unknown", "https://127.0.0.1:1");
    std::fs::write(
        &unknown,
        std::fs::read_to_string(&unknown).unwrap().replace("current-context: c", "current-context: d"),
    )
    .unwrap();
    let no_address = unreachable_cluster(directory.path(), "no-address", "no address");
    let rows: [(&[&str], &str); 11] = [
        (&[signed, "--from", from, "--ops-bind", &address], "; give another address with --bind or --ops-bind"),
        (&[signed, "--from", from, "--ops-bind", &address], &listen),
        (&[signed, "--from", from, "--bind", &address], &listen),
        (&[signed, "--kubeconfig", &unknown], "it has no context `d`"),
        (&[signed, "--kubeconfig", &no_address], "failed to parse cluster url"),
        (&[signed], "no cluster: give --from, or a kubeconfig"),
        (&["--from", from, "--tls-cert-dir", &one], "tls.key must belong to the first certificate in tls.crt"),
        (&["--from", from, "--tls-cert-dir", &three], "three/tls.key`"),
        (&["--from", from, "--tls-cert-dir", &four], "four/tls.key` holds no usable PEM private key"),
        (&["--from", from, "--tls-cert-dir", &five], "five/tls.crt` holds no certificate"),
        (&["--from", from, "--tls-cert-dir", &missing], "missing/tls.crt`"),
    ];
    for (arguments, says) in rows {
        let Output { status, stderr, .. } = command(directory.path(), arguments).output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
        let first = stderr.lines().next().unwrap();
        assert!(first.starts_with("error: "), "{arguments:?}: {stderr}");
        let reasons: Vec<&str> = first.split(": ").collect();
        let twice = (1..reasons.len()).find(|&at| reasons[..at].contains(&reasons[at]));
        assert_eq!(twice, None, "no cause is repeated: {first}");
    }
}

/// Writes a kubeconfig with a cluster at `server`.
fn unreachable_cluster(directory: &Path, name: &str, server: &str) -> String {
    let path = directory.join(name);
    let text = format!(
        "\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: '{server}'}}}}]
users: [{{name: c, user: {{token: t}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
current-context: c
"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A cluster may come up after its webhook.
#[test]
fn it_waits_for_an_api_server_that_is_down_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = Nobody::new();
    let kubeconfig = unreachable_cluster(directory.path(), "kubeconfig", &format!("https://{}", nobody.address()));
    let arguments = ["--bind", "127.0.0.1:0", "--kubeconfig", &kubeconfig, "--tls-secret", "s", "--service", "a/b"];
    let mut child = command(directory.path(), &[&arguments[..], &["--shutdown-delay=0s"]].concat()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    let mut missing = vec![
        "the cluster cannot be watched yet; retrying",
        "cannot watch UnionDeclarations; those known stay in force, retrying",
        "no valid serving certificate yet; retrying",
    ];
    while !missing.is_empty() {
        let line: Value =
            serde_json::from_str(&lines.next().unwrap_or_else(|| panic!("not logged: {missing:?}"))).unwrap();
        let message = line["message"].as_str().unwrap();
        if missing.contains(&message) {
            assert_eq!(line["level"], "WARN");
            assert!(line["reason"].as_str().unwrap().contains("Connection refused"), "{line}");
        }
        missing.retain(|missing| *missing != message);
    }
    assert!(child.try_wait().unwrap().is_none(), "it keeps running");
    let done = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
    for line in lines {
        let line: Value = serde_json::from_str(&line).unwrap();
        assert!(!line["message"].as_str().unwrap().contains("retrying"), "each reason is logged once: {line}");
    }
    assert!(child.wait().unwrap().success());
}

/// Every task of `serve` runs with these arguments. The API server is down.
#[test]
fn the_end_of_any_task_ends_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = Nobody::new();
    let kubeconfig = unreachable_cluster(directory.path(), "kubeconfig", &format!("https://{}", nobody.address()));
    let arguments = ["--bind", "127.0.0.1:0", "--kubeconfig", &kubeconfig, "--tls-secret", "s", "--service", "a/b"];
    let arguments = [&arguments[..], &["--register", "--enforcement=policies"]].concat();
    for task in ServeTask::value_variants() {
        for (fault, end) in [("", "panicked, see above"), ("=return", "ended")] {
            let fault = format!("{}{fault}", task.name());
            let Output { status, stderr, .. } =
                command(directory.path(), &arguments).env("KUBE_UNIONS_FAULT", &fault).output().unwrap();
            let log = String::from_utf8(stderr).unwrap();
            assert_eq!(status.code(), Some(2), "{fault}: {log}");
            let error = format!("error: the task {} {end}: start the webhook again", task.name());
            assert!(log.lines().any(|line| line == error), "{fault}: {log}");
        }
    }
}

#[tokio::test]
async fn no_value_of_an_object_is_logged_at_any_level() {
    const SECRET: &str = "s3cret";
    let with_spec = |spec: &str| {
        review("u").replace(
            r#""metadata":{"name":"x"}"#,
            &format!(r#""metadata":{{"name":"x","labels":{{"l":"{SECRET}"}}}},"spec":{spec}"#),
        )
    };
    let denied = with_spec(&format!(r#"{{"a":"{SECRET}","b":"{SECRET}","c":{{"d":["{SECRET}"]}}}}"#));
    let rows: Vec<(&str, u16, Vec<u8>)> = vec![
        ("denied", 200, denied.clone().into_bytes()),
        ("truncated", 400, denied.as_bytes()[..denied.len() - 40].to_vec()),
        ("not JSON", 400, format!("{SECRET} {denied}").into_bytes()),
        (
            "of another type",
            400,
            denied.replace(r#""operation":"CREATE""#, &format!(r#""operation":["{SECRET}"]"#)).into(),
        ),
        ("of no operation", 400, denied.replace("CREATE", SECRET).into()),
        ("of another kind", 400, denied.replace("AdmissionReview", SECRET).into()),
        (
            "no object",
            400,
            with_spec("0").replace(r#""object":{"#, &format!(r#""object":"{SECRET}","rest":{{"#)).into(),
        ),
        ("not UTF-8", 400, [denied.as_bytes(), b"\xff"].concat()),
    ];
    for level in ["info", "trace"] {
        let process = Process::start_with(&["--shutdown-delay", "0"], &[("RUST_LOG", level)]);
        for (what, code, body) in &rows {
            for path in ["/mutate", "/validate"] {
                let answer = process.send(&Request::post(path, body.clone())).await;
                assert_eq!(answer.code, *code, "{what}: {answer:?}");
            }
        }
        process.signal("-TERM");
        let (status, log) = process.ended_saying();
        assert_eq!(status.code(), Some(0));
        let leak = log.lines().find(|line| line.contains(SECRET));
        assert_eq!(leak, None, "at {level}");
        // Only a denial is logged. Two members without a discriminator are denied in both phases.
        assert_eq!(log.matches(r#""message":"denied""#).count(), 2, "{log}");
    }
}

/// A declaration and a CRD whose names, and a review whose identifier, would begin a line of the log or an escape sequence.
#[tokio::test]
async fn no_name_of_a_stranger_forges_a_line_of_the_log_or_reaches_the_terminal_raw() {
    const FORGED: &str =
        "x\n2026-01-01T00:00:00.000000Z ERROR forged\r\n\u{1b}[8m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2028}y";
    let directory = definitions();
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {FORGED: {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {FORGED: "A", "b": "B"}}],
    }}});
    let crd = crds::crd("nobody.example", "Stranger", &[crds::version("v1", &schema)]);
    let declaration = json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": FORGED},
        "spec": {"target": {"group": "nobody.example", "kind": "Stranger"},
            "unions": [{"path": FORGED, "fieldsToDiscriminateBy": {FORGED: "A"}}]}});
    std::fs::write(directory.path().join("crd.yaml"), crd.to_string()).unwrap();
    std::fs::write(directory.path().join("declaration.yaml"), declaration.to_string()).unwrap();
    let object = json!({"apiVersion": "nobody.example/v1", "kind": "Stranger", "metadata": {"name": FORGED, "namespace": FORGED},
        "spec": {FORGED: "a", "b": "b"}});
    let review = reviews::review(FORGED, "CREATE", Some(&object), None).to_string();
    let from = directory.path().to_str().unwrap();
    let serve = ["--bind", "127.0.0.1:0", "--from", from, "--tls-self-signed", "--shutdown-delay", "0"];
    for (format, on_terminal) in [("json", false), ("json", true), ("text", false), ("text", true)] {
        let mut command = command(directory.path(), &[&serve[..], &["--log-format", format]].concat());
        let stderr = if on_terminal {
            let (terminal, program_end) = open_terminal();
            command.env_remove("NO_COLOR").env("TERM", "xterm-256color").stderr(program_end);
            terminal
        } else {
            let (stderr, program_end) = std::io::pipe().unwrap();
            command.stderr(program_end);
            std::fs::File::from(std::os::fd::OwnedFd::from(stderr))
        };
        let mut child = command.spawn().unwrap();
        // The command keeps its end of the terminal open until it is dropped.
        drop(command);
        let (line, lines) = mpsc::channel();
        // A terminal fails when the program is gone, a pipe ends.
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|it| line.send(it))
        });
        let mut log = Vec::new();
        let mut logged = |message: &str| {
            let found = lines.iter().map(|line| without_styles(line.trim_end_matches('\r'))).find(|line| {
                log.push(line.clone());
                line.contains(message)
            });
            found.unwrap_or_else(|| panic!("`{message}` is not logged: {log:#?}"))
        };
        let between = |line: &str, before: &[&str]| {
            let after = before.iter().find_map(|before| line.split_once(before)).unwrap_or_else(|| panic!("{line}")).1;
            after.split('"').next().unwrap().to_owned()
        };
        let ca = between(&logged("self-signed certificate"), &["ca=\"", "\"ca\":\""]);
        let webhook = between(&logged("listening"), &["webhook=\"", "\"webhook\":\""]);
        let mut wire = Wire::tls(webhook.parse().unwrap(), trusting(Path::new(&ca), None)).await.unwrap();
        let answer = wire.exchange(&Request::post("/validate", review.clone())).await;
        assert_eq!(answer.json()["response"]["allowed"], false, "{answer:?}");
        drop(wire);
        logged("denied");
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        assert!(child.wait().unwrap().success());
        log.extend(lines.iter().map(|line| without_styles(line.trim_end_matches('\r'))));

        let case = format!("{format}, terminal {on_terminal}: {log:#?}");
        let has_both = |message: &str| log.iter().any(|line| line.contains(message) && line.contains("forged"));
        assert!(has_both("a declaration is not in force") && has_both("denied"), "{case}");
        let begins = |line: &&String| match format {
            "json" => serde_json::from_str::<Value>(line).is_ok(),
            // The time, which is not the forged one.
            _ => line.starts_with("20") && !line.starts_with("2026-01-01T00:00:00.000000Z"),
        };
        assert_eq!(log.iter().find(|line| !begins(line)), None, "{case}");
        assert_eq!(log.iter().find(|line| line.contains(is_raw) || line.contains('\u{2028}')), None, "{case}");
    }
}
