//! No secret of a kubeconfig or of the environment reaches an output, whatever is wrong with them.

mod arguments;

use super::{Folder, Run, binary, run};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fixtures::wait::{SOON, eventually};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// A secret of every row. It is neither base64 nor a token.
const SECRET: &str = "hunter2_MARK";

/// A port where nobody listens.
const NOBODY: &str = "127.0.0.1:1";

/// The variables that lead to a cluster, or to a proxy.
const VARIABLES: [&str; 13] = [
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "KUBE_RS_DEBUG_OVERRIDE_URL",
    "RUST_LOG",
];

/// A fault of a kubeconfig or of the environment.
struct SecretRow {
    what: &'static str,
    user: Value,
    cluster: Value,
    variables: Vec<(&'static str, String)>,
    /// A part of the message of the command.
    says: &'static str,
}

/// A fault of the user of a kubeconfig.
fn user(what: &'static str, user: Value, says: &'static str) -> SecretRow {
    SecretRow { what, user, cluster: json!({"server": format!("http://{NOBODY}")}), variables: Vec::new(), says }
}

/// A fault of the cluster of a kubeconfig.
fn cluster(what: &'static str, cluster: Value, says: &'static str) -> SecretRow {
    SecretRow { cluster, ..user(what, json!({"token": SECRET}), says) }
}

/// A fault of the environment.
fn environment(what: &'static str, variables: &[(&'static str, &str)], says: &'static str) -> SecretRow {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let cluster = json!({"server": "http://cluster.invalid:6443"});
    SecretRow { cluster, variables, ..user(what, json!({"token": SECRET}), says) }
}

/// A user with an exec plugin: a script, whose arguments and variables have the secret.
fn plugin(what: &'static str, script: &str, says: &'static str) -> SecretRow {
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "sh",
        "args": ["-c", script.replace("SECRET", SECRET), SECRET], "env": [{"name": "PASSWORD", "value": SECRET}]});
    user(what, json!({"exec": exec}), says)
}

fn provider(what: &'static str, name: &str, config: &Value) -> SecretRow {
    user(
        what,
        json!({"auth-provider": {"name": name, "config": config}}),
        "`auth-provider` of the kubeconfig is not supp",
    )
}

fn credential(status: &Value) -> String {
    format!("printf '%s' '{}'", json!({"kind": "ExecCredential", "status": status}))
}

const PROXY: &str = "the proxy URL of the kubeconfig or of HTTPS_PROXY must begin with http://, https:// or socks5://";
const TLS_SERVER_NAME: &str = "`tls-server-name` of the kubeconfig is neither a DNS name nor an IP address";
const SERVER: &str = "the `server` of the kubeconfig must begin with https:// or http://";
const UNANSWERED: &str = "the API server";
const PLUGIN: &str = "the exec plugin of the kubeconfig";
const CONTROL: &str = "the token of the kubeconfig has a line break";

#[expect(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<SecretRow> {
    let lines = format!("{SECRET}\n{SECRET}");
    let pem = |kind: &str| STANDARD.encode(format!("-----BEGIN {kind}-----\n{SECRET}\n-----END {kind}-----\n"));
    let broken = STANDARD.encode(format!("-----BEGIN {SECRET}\n{SECRET}\n"));
    let mut rows = vec![
        user("a token", json!({"token": SECRET}), UNANSWERED),
        user("a token of two lines", json!({"token": lines}), CONTROL),
        user("a token with its line break", json!({"token": format!("{SECRET}\n")}), CONTROL),
        user("a token that is no text", json!({"token": {SECRET: 1}}), "it is not a kubeconfig"),
        user("a token file that is not there", json!({"tokenFile": "missing"}), "cannot read the token `"),
        user("a token file that is a folder", json!({"tokenFile": "."}), "cannot read the token `"),
        user("a token file of two lines", json!({"tokenFile": "lines"}), "it holds no token"),
        user("a password", json!({"username": SECRET, "password": SECRET}), UNANSWERED),
        user("a password of two lines", json!({"username": "me", "password": lines}), UNANSWERED),
        user("a password without a user", json!({"password": SECRET}), UNANSWERED),
        user("a user of two lines", json!({"as": lines}), "the impersonation of the kubeconfig"),
        user("a group of two lines", json!({"as": "me", "as-groups": [lines]}), "the impersonation of the kubeconfig"),
        user(
            "a key that is not base64",
            json!({"client-certificate-data": pem("CERTIFICATE"), "client-key-data": SECRET}),
            "its `client-key-data` is not base64",
        ),
        user(
            "a certificate that is not base64",
            json!({"client-certificate-data": SECRET, "client-key-data": pem("PRIVATE KEY")}),
            "its `client-certificate-data` is not base64",
        ),
        user(
            "a key that is not PEM",
            json!({"client-certificate-data": pem("CERTIFICATE"), "client-key-data": STANDARD.encode(SECRET)}),
            "certificates or its key",
        ),
        user(
            "a key that is broken PEM",
            json!({"client-certificate-data": pem("CERTIFICATE"), "client-key-data": broken}),
            "certificates or its key",
        ),
        user(
            "a key of another kind",
            json!({"client-certificate-data": pem("CERTIFICATE"), "client-key-data": pem("PRIVATE KEY")}),
            "certificates or its key",
        ),
        user("a key without a certificate", json!({"client-key-data": pem("PRIVATE KEY")}), "cannot"),
        user(
            "a key file with something else",
            json!({"client-certificate": "lines", "client-key": "lines"}),
            "certificates or its key",
        ),
        user(
            "a key file that is not there",
            json!({"client-certificate": "lines", "client-key": "missing"}),
            "cannot read its `client-key`",
        ),
        plugin("a plugin that fails", "echo SECRET; echo SECRET >&2; exit 3", PLUGIN),
        plugin("a plugin that is killed", "echo SECRET; kill -9 $$", PLUGIN),
        plugin("a plugin that prints nothing", "true", PLUGIN),
        plugin("a plugin that prints no YAML", "echo '{SECRET: ['; echo SECRET", PLUGIN),
        plugin("a plugin that prints something else", "echo SECRET", PLUGIN),
        plugin("a plugin that never stops to print", "yes SECRET", PLUGIN),
        plugin("a plugin without a status", &credential(&Value::Null), PLUGIN),
        plugin("a plugin with a certificate alone", &credential(&json!({"clientCertificateData": SECRET})), PLUGIN),
        plugin("a plugin with a token of two lines", &credential(&json!({"token": "SECRET\nSECRET"})), PLUGIN),
        plugin(
            "a plugin whose token ends at no time",
            &credential(&json!({"token": "SECRET", "expirationTimestamp": "SECRET"})),
            PLUGIN,
        ),
        plugin("a plugin with a token", &credential(&json!({"token": "SECRET"})), UNANSWERED),
        plugin(
            "a plugin with a token that has expired",
            &credential(&json!({"token": "SECRET", "expirationTimestamp": "2020-01-01T00:00:00+02:00"})),
            UNANSWERED,
        ),
        plugin(
            "a plugin with a broken certificate",
            &credential(&json!({"clientCertificateData": "SECRET", "clientKeyData": "SECRET"})),
            "certificates or its key",
        ),
        plugin(
            "a plugin that fails the second time",
            &format!(
                "test -e asked && {{ echo SECRET; exit 4; }}; touch asked; {}",
                credential(&json!({"token": "SECRET", "expirationTimestamp": "2020-01-01T00:00:00Z"}))
            ),
            PLUGIN,
        ),
        user(
            "a plugin that is not there",
            json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./missing", "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}]}}),
            PLUGIN,
        ),
        user("a plugin without a command", json!({"exec": {"args": [SECRET]}}), PLUGIN),
        provider("an unknown provider", "unheard-of", &json!({"client-secret": SECRET})),
        provider("a provider without a token", "oidc", &json!({"client-secret": SECRET, "refresh-token": SECRET})),
        provider("a provider whose token ends at no time", "gcp", &json!({"access-token": SECRET, "expiry": SECRET})),
        provider("a provider with a command", "gcp", &json!({"cmd-path": "false", "cmd-args": SECRET})),
        provider("a provider with a command that is not there", "gcp", &json!({"cmd-path": SECRET})),
        user(
            "a provider with a token of two lines",
            json!({"auth-provider": {"name": "oidc", "config": {"id-token": lines}}}),
            CONTROL,
        ),
        cluster("a URL with a password", json!({"server": format!("http://me:{SECRET}@{NOBODY}")}), UNANSWERED),
        cluster(
            "an encrypted URL with a password",
            json!({"server": format!("https://me:{SECRET}@{NOBODY}")}),
            UNANSWERED,
        ),
        cluster("a URL with a blank", json!({"server": format!("http://me:{SECRET} @{NOBODY}")}), "is not a URL"),
        cluster("a URL without a scheme", json!({"server": format!("me:{SECRET}@{NOBODY}")}), SERVER),
        cluster("a URL of another scheme", json!({"server": format!("ftp://me:{SECRET}@{NOBODY}")}), SERVER),
        cluster(
            "a CA that is not base64",
            json!({"server": "https://x.invalid", "certificate-authority-data": SECRET}),
            "is not base64",
        ),
        cluster(
            "a CA that is not PEM",
            json!({"server": "https://x.invalid", "certificate-authority-data": STANDARD.encode(SECRET)}),
            "",
        ),
        environment(
            "a debugging aid",
            &[("KUBE_RS_DEBUG_OVERRIDE_URL", &format!("http://me:{SECRET}@{NOBODY}"))],
            UNANSWERED,
        ),
        environment(
            "what no proxy is for",
            &[("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", &format!("me:{SECRET}@/x y, "))],
            "NO_PROXY is not a list",
        ),
        environment(
            "proxies of other protocols",
            &[("HTTP_PROXY", &format!("http://me:{SECRET}@{NOBODY}")), ("ALL_PROXY", &format!("ftp://me:{SECRET}@x"))],
            UNANSWERED,
        ),
    ];
    for name in ["a b", "SECRET ", "me:SECRET@x", "x.invalid:6443", "*.x.invalid"] {
        let cluster_with_name = |name: String| json!({"server": "https://x.invalid", "tls-server-name": name});
        rows.push(cluster("a name of a server", cluster_with_name(name.replace("SECRET", SECRET)), TLS_SERVER_NAME));
    }
    let unnamed = json!({"server": format!("http://{NOBODY}"), "tls-server-name": ""});
    rows.push(cluster("an empty name of a server", unnamed, UNANSWERED));
    for (spelling, says) in [
        ("me:SECRET@127.0.0.1:1", PROXY),
        ("me:SECRET@proxy", PROXY),
        ("ftp://me:SECRET@127.0.0.1:1", PROXY),
        ("socks4://me:SECRET@127.0.0.1:1", PROXY),
        ("HTTP//me:SECRET@127.0.0.1:1", PROXY),
        ("http://me:SECRET @127.0.0.1:1", PROXY),
        ("//me:SECRET@127.0.0.1:1", PROXY),
        ("http://me:SECRET@127.0.0.1:1", UNANSWERED),
        ("https://me:SECRET@127.0.0.1:1", UNANSWERED),
        ("socks5://me:SECRET@127.0.0.1:1", UNANSWERED),
    ] {
        let url = spelling.replace("SECRET", SECRET);
        let server = "http://cluster.invalid:6443";
        rows.push(cluster("a proxy of the kubeconfig", json!({"server": server, "proxy-url": url}), says));
        for variable in ["HTTPS_PROXY", "https_proxy"] {
            rows.push(environment("a proxy of the environment", &[(variable, &url)], says));
        }
    }
    rows
}

/// The ways in which a command finds a kubeconfig.
const EXPLAIN: [&[&str]; 3] =
    [&["explain", "--kubeconfig", "kubeconfig"], &["explain"], &["explain", "--context", "c"]];

/// Runs a test of every fault, some at a time.
fn for_each_row(test: impl Fn(&SecretRow) + Sync) {
    let rows = rows();
    assert_eq!(rows.len(), 88);
    let queue = Mutex::new(rows.iter());
    let work = || {
        while let Some(row) = { queue.lock().unwrap().next() } {
            test(row);
        }
    };
    thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(work));
        for thread in threads {
            thread.join().expect("no row fails");
        }
    });
}

/// Returns a program that has this fault.
fn command(folder: &Folder, row: &SecretRow, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(arguments).env("HOME", folder.path());
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.envs(row.variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Returns a folder with the kubeconfig of a fault, as the file `kubeconfig` and where a command looks for it.
fn faulty(row: &SecretRow) -> Folder {
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": row.cluster}], "users": [{"name": "c", "user": row.user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let (text, lines) = (config.to_string(), format!("{SECRET}\n{SECRET}\n"));
    Folder::new(&[("kubeconfig", &text), (".kube/config", &text), ("lines", &lines), (".kube/lines", &lines)])
}

#[track_caller]
fn assert_silent(what: &str, output: &str) {
    for form in [SECRET.to_owned(), STANDARD.encode(SECRET), SECRET[..8].to_owned(), SECRET.replace('_', "%5F")] {
        assert!(!output.contains(&form), "{what}: {output}");
    }
}

fn assert_says_and_is_silent(row: &SecretRow, run: &Run) {
    assert_silent(row.what, &format!("{run:?}"));
    assert!(run.code == 2 && run.stderr.contains(row.says), "{}: {run:#?}", row.what);
    assert!(run.stderr.starts_with("error: ") && !run.stderr.contains("panicked"), "{}: {run:#?}", row.what);
}

#[test]
fn no_command_shows_a_secret_of_the_kubeconfig_or_of_the_environment() {
    for_each_row(|row| {
        for arguments in EXPLAIN {
            let folder = faulty(row);
            assert_says_and_is_silent(row, &run(&mut command(&folder, row, arguments), b""));
        }
    });
}

#[test]
fn a_kubeconfig_that_is_not_one_shows_nothing_of_its_lines() {
    let token = format!("users: [{{name: c, user: {{token: {SECRET}");
    for text in [
        format!("{token}\n"),
        format!("{token}}}}}]\n\tkind: [{SECRET}\n"),
        format!("{SECRET}\n"),
        format!("contexts: {{{SECRET}: 1}}\n"),
        format!("users: [{{name: c, user: {{exec: {{args: {SECRET}}}}}}}]\n"),
    ] {
        let row = user("a broken file", json!({}), "it is not a kubeconfig: see line");
        let folder = Folder::new(&[("kubeconfig", &text), (".kube/config", &text)]);
        for arguments in EXPLAIN {
            assert_says_and_is_silent(&row, &run(&mut command(&folder, &row, arguments), b""));
        }
        // A command in a pod also looks for a service account.
        let mut in_pod = command(&folder, &row, &["explain"]);
        in_pod.env("KUBERNETES_SERVICE_HOST", SECRET).env("KUBERNETES_SERVICE_PORT", SECRET);
        assert_says_and_is_silent(&row, &run(&mut in_pod, b""));
    }
}

/// The log has everything that any library has to say.
#[test]
fn no_log_of_serve_shows_a_secret_of_the_kubeconfig_or_of_the_environment() {
    for_each_row(serve);
}

/// Serves until it has tried to read the cluster, or ends by itself.
fn serve(row: &SecretRow) {
    let folder = faulty(row);
    let arguments = ["serve", "--kubeconfig", "kubeconfig", "--bind", "127.0.0.1:0", "--ops-bind", "127.0.0.1:0"];
    let mut command = command(&folder, row, &[&arguments[..], &["--tls-self-signed"]].concat());
    command.env("RUST_LOG", "trace").env("TMPDIR", folder.path());
    let log = folder.path().join("log");
    let output = Arc::new(fs::File::create(&log).unwrap());
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let text = || String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    let has_tried = || child.try_wait().unwrap().is_some() || text().contains("the cluster cannot be watched yet");
    let tried = eventually(SOON, has_tried);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = text();
    assert_silent(row.what, &text);
    assert!(tried, "{}: {text}", row.what);
}
