//! `kube-unions serve` as a process: its log, its signals, and its errors at the start.

use super::wire::{Answer, Nobody, Request, Wire, review, trusting};
use crate::cli::Folder;
use crate::cli::terminal::open_terminal;
use fixtures::terminal::{is_raw, without_styles};
use fixtures::{crds, reviews};
use kube_unions_webhook::supervision::ServeTask;
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;

/// Serves the unions of the CRD in the folder.
const SERVE: [&str; 5] = ["--bind", "127.0.0.1:0", "--from", ".", "--tls-self-signed"];

/// Returns a folder with one CRD that declares a union in its schema, of a field of this name and `b`.
fn definitions(member: &str) -> Folder {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {member: text, "b": text},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {member: "A", "b": "B"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let crd = crds::crd("nobody.example", "Stranger", &[crds::version("v1", &schema)]);
    Folder::new(&[("crd.yaml", &crd.to_string())])
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-unions"));
    command.current_dir(folder.path()).arg("serve").args(arguments);
    if !arguments.contains(&"--log-format") {
        command.args(["--log-format", "json"]);
    }
    if !arguments.contains(&"--ops-bind") {
        command.args(["--ops-bind", "127.0.0.1:0"]);
    }
    for variable in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "RUST_LOG", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command.env("TMPDIR", folder.path()).env("HOME", folder.path()).env("TERM", "xterm-256color");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A running webhook. It is killed when dropped.
pub(super) struct Process {
    child: Child,
    /// The lines of the log, without styles. A thread reads them all the time, because a full pipe would block the webhook.
    log: mpsc::Receiver<String>,
    /// The lines that were looked at.
    seen: Vec<String>,
    pub(super) webhook: SocketAddr,
    ops: SocketAddr,
    pub(super) ca_file: PathBuf,
    _folder: Option<Folder>,
}

impl Process {
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts it with these environment variables.
    pub(super) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = definitions("a");
        let mut command = command(&folder, &[&SERVE, arguments].concat());
        command.envs(variables.iter().copied());
        let mut this = Self::spawn(Some(folder), command, false);
        this.ca_file = this.logged("self-signed certificate")["ca"].as_str().unwrap().into();
        let listening = this.logged("listening");
        this.webhook = listening["webhook"].as_str().unwrap().parse().unwrap();
        this.ops = listening["ops"].as_str().unwrap().parse().unwrap();
        this
    }

    /// Starts a command that logs to a terminal, or to a pipe. The folder stays as long as the process.
    fn spawn(folder: Option<Folder>, mut command: Command, on_terminal: bool) -> Self {
        let log = if on_terminal {
            let (terminal, program_end) = open_terminal();
            command.stderr(program_end);
            terminal
        } else {
            let (log, program_end) = std::io::pipe().unwrap();
            command.stderr(program_end);
            File::from(OwnedFd::from(log))
        };
        let child = command.spawn().unwrap();
        // The command keeps its end open until it is dropped.
        drop(command);
        let (line, lines) = mpsc::channel();
        // A terminal fails when the program is gone, a pipe ends.
        thread::spawn(move || {
            let mut read = BufReader::new(log).lines().map_while(Result::ok);
            read.try_for_each(|it| line.send(without_styles(it.trim_end_matches('\r'))))
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            child,
            log: lines,
            seen: Vec::new(),
            webhook: nowhere,
            ops: nowhere,
            ca_file: PathBuf::new(),
            _folder: folder,
        }
    }

    /// Waits for the next line that has this text.
    fn line(&mut self, text: &str) -> String {
        for line in &self.log {
            self.seen.push(line);
            if let Some(found) = self.seen.last().filter(|line| line.contains(text)) {
                return found.clone();
            }
        }
        panic!("`{text}` is not logged: {:#?}", self.seen)
    }

    /// Waits for the next line with this message.
    pub(super) fn logged(&mut self, message: &str) -> Value {
        serde_json::from_str(&self.line(&format!(r#""message":"{message}""#))).unwrap()
    }

    pub(super) async fn connect(&self) -> Wire {
        let authority = fs::read_to_string(&self.ca_file).unwrap();
        Wire::tls(self.webhook, trusting(&authority, None)).await.unwrap()
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
        let rest: Vec<String> = self.log.iter().collect();
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
    let folder = definitions("a");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let listen = format!("cannot listen on `{address}`: ");
    // Key pairs: the first with the other's key, one whose key is a directory, one without a key, one without a certificate, and three
    // with a named pipe, a device and a tebibyte.
    for name in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        folder.run(&["certs", "--dir", name]).code(0);
    }
    folder.write("one/tls.key", folder.read("two/tls.key"));
    fs::remove_file(folder.path().join("three/tls.key")).unwrap();
    fs::create_dir(folder.path().join("three/tls.key")).unwrap();
    folder.write("four/tls.key", "nonsense");
    folder.write("five/tls.crt", "");
    for file in ["six/tls.crt", "seven/tls.key", "eight/tls.crt"] {
        fs::remove_file(folder.path().join(file)).unwrap();
    }
    mkfifoat(CWD, folder.path().join("six/tls.crt"), Mode::RUSR | Mode::WUSR).unwrap();
    symlink("/dev/zero", folder.path().join("seven/tls.key")).unwrap();
    File::create(folder.path().join("eight/tls.crt")).unwrap().set_len(1 << 40).unwrap();
    folder.kubeconfig(&json!({"server": "https://127.0.0.1:1"}));
    folder.write("unknown", folder.read("kubeconfig").replace(r#""current-context":"c""#, r#""current-context":"d""#));
    let identity = |user: &str| folder.read("kubeconfig").replace(r#""user":{}"#, &format!(r#""user":{{{user}}}"#));
    folder.write("token", identity(r#""tokenFile":"six/tls.crt""#));
    folder.write("long-token", identity(r#""tokenFile":"eight/tls.crt""#));
    folder.write("key", identity(r#""client-certificate":"one/tls.crt","client-key":"seven/tls.key""#));
    folder.kubeconfig(&json!({"server": "https://127.0.0.1:1", "certificate-authority": "seven/tls.key"}));
    folder.write("authority", folder.read("kubeconfig"));
    folder.kubeconfig(&json!({"server": "no address"}));
    let (from, signed) = (["--from", "crd.yaml"], "--tls-self-signed");
    let pair = |name: &'static str| vec![from[0], from[1], "--tls-cert-dir", name];
    let listening = |flag: &'static str| vec![signed, from[0], from[1], flag, &*address];
    let listening_to = |ca: &'static str| vec![signed, from[0], from[1], "--client-ca", ca];
    let rows = [
        (listening("--ops-bind"), "; give another address with --bind or --ops-bind"),
        (listening("--ops-bind"), &*listen),
        (listening("--bind"), &*listen),
        (vec![signed, "--kubeconfig", "unknown"], "it has no context `d`"),
        (vec![signed, "--kubeconfig", "kubeconfig"], "the `server` of its cluster is not a URL"),
        (vec![signed], "no cluster: give --from, or a kubeconfig"),
        (vec![signed, "--kubeconfig", "seven/tls.key"], "cannot read `seven/tls.key`: it is neither a file nor a pipe"),
        (
            vec![signed, "--kubeconfig", "eight/tls.crt"],
            "cannot read `eight/tls.crt`: it has more than 536870912 bytes",
        ),
        (vec![signed, "--kubeconfig", "authority"], "seven/tls.key`: it is neither a file nor a pipe"),
        (vec![signed, "--kubeconfig", "key"], "seven/tls.key`: it is neither a file nor a pipe"),
        (vec![signed, "--kubeconfig", "token"], "six/tls.crt`: it is not a regular file"),
        (vec![signed, "--kubeconfig", "long-token"], "eight/tls.crt`: it has more than 1048576 bytes"),
        (pair("one"), "tls.key must belong to the first certificate in tls.crt"),
        (pair("three"), "three/tls.key`"),
        (pair("four"), "four/tls.key` holds no usable PEM private key"),
        (pair("five"), "five/tls.crt` holds no certificate"),
        (pair("six"), "six/tls.crt`: it is not a regular file"),
        (pair("seven"), "seven/tls.key`: it is not a regular file"),
        (pair("eight"), "eight/tls.crt`: it has more than 1048576 bytes"),
        (listening_to("six/tls.crt"), "`six/tls.crt`: it is not a regular file"),
        (listening_to("seven/tls.key"), "`seven/tls.key`: it is not a regular file"),
        (pair("missing"), "missing/tls.crt`"),
    ];
    for (arguments, says) in rows {
        let Output { status, stderr, .. } = command(&folder, &arguments).output().unwrap();
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

/// The arguments for a cluster, with every task that `serve` has.
const CLUSTER: [&str; 9] = [
    "--bind",
    "127.0.0.1:0",
    "--kubeconfig",
    "kubeconfig",
    "--tls-secret",
    "s",
    "--service",
    "a/b",
    "--shutdown-delay=0s",
];

/// Returns a folder with the kubeconfig of an API server that is down.
fn down(nobody: &Nobody) -> Folder {
    let folder = Folder::new(&[]);
    folder.kubeconfig(&json!({"server": format!("https://{}", nobody.address())}));
    folder
}

/// A cluster may come up after its webhook.
#[test]
fn it_waits_for_an_api_server_that_is_down_at_the_start() {
    let nobody = Nobody::new();
    let folder = down(&nobody);
    let mut process = Process::spawn(None, command(&folder, &CLUSTER), false);
    let mut missing = vec![
        "the cluster cannot be watched yet; retrying",
        "cannot watch UnionDeclarations; those known stay in force, retrying",
        "no valid serving certificate yet; retrying",
    ];
    while !missing.is_empty() {
        let line: Value = serde_json::from_str(&process.line("")).unwrap();
        let message = line["message"].as_str().unwrap();
        if missing.contains(&message) {
            assert_eq!(line["level"], "WARN");
            assert!(line["reason"].as_str().unwrap().contains("Connection refused"), "{line}");
        }
        missing.retain(|missing| *missing != message);
    }
    assert!(process.child.try_wait().unwrap().is_none(), "it keeps running");
    process.signal("-TERM");
    let (status, rest) = process.ended_saying();
    assert!(!rest.contains("retrying"), "each reason is logged once: {rest}");
    assert!(status.success());
}

/// The name of a Service is the one that the API server asks for.
#[tokio::test]
async fn a_pair_for_another_name_than_the_service_is_not_served() {
    let nobody = Nobody::new();
    let folder = down(&nobody);
    let certificate = |host: &str| drop(folder.run(&["certs", "--dir", "tls", "--force", "--host", host]).code(0));
    certificate("b.a.svc");
    let arguments =
        ["--bind", "127.0.0.1:0", "--kubeconfig", "kubeconfig", "--tls-cert-dir", "tls", "--shutdown-delay=0s"];
    for (service, says) in [
        (Some("--service=a/b"), "not for `b.a.svc`, the name that the API server asks for"),
        (Some("--service=a/b:8443"), "not for `b.a.svc`, the name that the API server asks for"),
        (None, "without --service, a certificate is served whatever its names are"),
    ] {
        certificate("*.a.svc");
        let given: Vec<&str> =
            arguments.into_iter().chain(service).chain(service.map(|_| "--register=false")).collect();
        let mut process = Process::spawn(None, command(&folder, &given), false);
        if service.is_none() {
            process.line(says);
        }
        process.ops = process.logged("listening")["ops"].as_str().unwrap().parse().unwrap();
        let checks = Wire::plain(process.ops).await.exchange(&Request::get("/readyz?verbose")).await.body;
        assert!(checks.contains("[+]certificate ok\n"), "{checks}");
        certificate("other.example");
        if service.is_none() {
            process.logged("certificate reloaded");
        } else {
            let refused = process.line("certificate");
            assert!(refused.contains("certificate not reloaded; the previous one stays in force"), "{refused}");
            // A file is replaced after the other.
            let refused = if refused.contains(says) { refused } else { process.line("certificate") };
            assert!(refused.contains(says), "{refused}");
        }
        process.signal("-TERM");
        assert!(process.ended_saying().1.matches(says).count() == 0, "it is said once");
    }
}

/// Every task of `serve` runs with these arguments. The API server is down.
#[test]
fn the_end_of_any_task_ends_the_process() {
    let nobody = Nobody::new();
    let folder = down(&nobody);
    let arguments = [&CLUSTER[..], &["--register", "--enforcement=policies"]].concat();
    for task in ServeTask::ALL {
        for (fault, end) in [("", "panicked, see above"), ("=return", "ended")] {
            let fault = format!("{}{fault}", task.name());
            let Output { status, stderr, .. } =
                command(&folder, &arguments).env("KUBE_UNIONS_FAULT", &fault).output().unwrap();
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
    let folder = definitions(FORGED);
    let declaration = json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": FORGED},
        "spec": {"target": {"group": "nobody.example", "kind": "Stranger"},
            "unions": [{"path": FORGED, "fieldsToDiscriminateBy": {FORGED: "A"}}]}});
    folder.write("declaration.yaml", declaration.to_string());
    let object = json!({"apiVersion": "nobody.example/v1", "kind": "Stranger", "metadata": {"name": FORGED, "namespace": FORGED},
        "spec": {FORGED: "a", "b": "b"}});
    let review = reviews::review(FORGED, "CREATE", Some(&object), None).to_string();
    for (format, on_terminal) in [("json", false), ("json", true), ("text", false), ("text", true)] {
        let arguments = [&SERVE[..], &["--shutdown-delay", "0", "--log-format", format]].concat();
        let mut process = Process::spawn(None, command(&folder, &arguments), on_terminal);
        let between = |line: &str, before: &[&str]| {
            let after = before.iter().find_map(|before| line.split_once(before)).unwrap_or_else(|| panic!("{line}")).1;
            after.split('"').next().unwrap().to_owned()
        };
        process.ca_file = between(&process.line("self-signed certificate"), &["ca=\"", "\"ca\":\""]).into();
        process.webhook = between(&process.line("listening"), &["webhook=\"", "\"webhook\":\""]).parse().unwrap();
        let answer = process.send(&Request::post("/validate", review.clone())).await;
        assert_eq!(answer.json()["response"]["allowed"], false, "{answer:?}");
        process.line("denied");
        process.signal("-TERM");
        let mut log = std::mem::take(&mut process.seen);
        let (status, rest) = process.ended_saying();
        assert!(status.success());
        log.extend(rest.lines().map(str::to_owned));

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
