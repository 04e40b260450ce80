//! `audit` of a cluster whose API server lets lists expire, is out of breath, keeps things to itself, and never ends.

mod large;
mod proxy;

use super::super::bounded::limited;
use super::super::{CRD, Folder, Run, binary, run, yaml};
use fixtures::api_server::{DECLARATIONS, DEFINITIONS, Loopback, status};
use fixtures::crds::established;
use fixtures::wait::{SOON, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WIDGETS: &str = "/apis/example.com/v1/widgets";

/// Nearly what a pipe holds while nobody reads: a few bytes of each part of it may stay empty.
const PIPE: u64 = 60 << 10;

/// A request.
#[derive(Debug, Clone)]
struct Asked {
    path: String,
    /// The parameters `continue` and `limit`.
    token: String,
    limit: String,
    /// The number of equal requests before.
    before: usize,
}

/// An answer: status and body.
type Answer = (u16, Value);

/// The status of what is never answered.
const NEVER: u16 = 0;

/// An API server on loopback that has Widgets, and answers of a test's.
struct ApiServer {
    folder: Folder,
    asked: Arc<Mutex<Vec<Asked>>>,
    loopback: Loopback,
}

impl ApiServer {
    /// Asks `answer` first. If it has none, the server answers as a cluster with the kind `Widget` alone.
    fn start(answer: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let loopback = Loopback::start(move |call| {
            let mut log = log.lock().unwrap();
            let parameter = |name| call.parameter(name).unwrap_or_default().to_owned();
            let [token, limit] = ["continue", "limit"].map(parameter);
            let before = log.iter().filter(|it: &&Asked| it.path == call.path && it.token == token).count();
            let asked = Asked { path: call.path.clone(), token, limit, before };
            log.push(asked.clone());
            match answer(&asked).unwrap_or_else(|| common(&asked.path)) {
                (NEVER, _) => call.ignore(),
                (code, body) => call.answer(code, &body),
            }
        });
        let this = Self { folder: Folder::new(&[]), asked, loopback };
        this.folder.kubeconfig(&json!({"server": this.loopback.url()}));
        this
    }

    fn address(&self) -> SocketAddr {
        self.loopback.address
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.folder.path()).args(["audit", "--kubeconfig=kubeconfig"]).args(arguments);
        for variable in ["RUST_LOG", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(variable);
        }
        command
    }

    fn audit(&self, arguments: &[&str]) -> Run {
        run(&mut self.command(arguments), b"")
    }

    /// Every request for a path.
    fn requests(&self, path: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|it| it.path == path).cloned().collect()
    }

    /// The tokens of every request for Widgets.
    fn tokens(&self) -> Vec<String> {
        self.requests(WIDGETS).into_iter().map(|it| it.token).collect()
    }
}

impl Asked {
    fn is(&self, path: &str) -> bool {
        self.path == path
    }
}

/// Returns the answer of a cluster with the kind `Widget`.
fn common(path: &str) -> (u16, Value) {
    match path {
        DEFINITIONS => (200, list(&[definition()], "", 0)),
        DECLARATIONS => (404, status(404, "NotFound", "the server could not find the requested resource")),
        "/api" => (200, discovery("", &[("v1", "ConfigMap", "configmaps", "cm")])),
        "/apis" => (200, discovery("example.com", &[("v1", "Widget", "widgets", "wd")])),
        _ => (404, status(404, "NotFound", "nothing here")),
    }
}

/// Returns the CRD of Widgets.
fn definition() -> Value {
    stored(CRD)
}

/// Returns a CRD as an API server has it, which keeps the annotation only.
fn stored(text: &str) -> Value {
    let mut definition = yaml(&kube_unions::annotated(text).unwrap());
    definition["status"] = established(&definition["spec"]["names"]);
    definition
}

fn discovery(group: &str, resources: &[(&str, &str, &str, &str)]) -> Value {
    let versions = resources.iter().map(|(version, kind, plural, short)| {
        json!({"version": version, "resources": [{"resource": plural, "singularResource": kind.to_lowercase(),
            "shortNames": [short], "scope": "Namespaced", "verbs": ["list"],
            "responseKind": {"group": group, "version": version, "kind": kind}}]})
    });
    let versions: Vec<Value> = versions.collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": group}, "versions": versions}]})
}

fn list(items: &[Value], next: &str, remaining: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items,
        "metadata": {"resourceVersion": "7", "continue": next, "remainingItemCount": remaining}})
}

/// The Widget `number`. Every fifth is invalid.
fn widget(number: usize) -> Value {
    let mut spec = json!({"git": {"url": "x"}});
    if number.is_multiple_of(5) {
        spec["oci"] = json!({});
    }
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec,
        "metadata": {"name": format!("w{number:03}"), "namespace": if number < 40 { "a" } else { "b" }}})
}

/// A page of so many Widgets, whose tokens are the number to go on with.
fn page(asked: &Asked, total: usize) -> Answer {
    page_of(asked, total, widget)
}

/// The same of other objects.
fn page_of(asked: &Asked, total: usize, object: impl Fn(usize) -> Value) -> Answer {
    let start: usize = asked.token.trim_matches(['n', 'x']).parse().unwrap_or(0);
    let end = (start + asked.limit.parse::<usize>().unwrap()).min(total);
    let items: Vec<Value> = (start..end).map(object).collect();
    let next = if end < total { format!("n{end}") } else { String::new() };
    (200, list(&items, &next, total - end))
}

fn expired(next: &str) -> Answer {
    let mut gone = status(410, "Expired", "The provided continue parameter is too old");
    gone["metadata"]["continue"] = next.into();
    (410, gone)
}

/// The names of the invalid objects of a JSON report, which has each once.
fn invalid(run: &Run) -> Vec<String> {
    let findings = run.json()["findings"].as_array().unwrap().clone();
    findings.iter().map(|finding| finding["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the invalid ones of `total` Widgets.
fn every_fifth(total: usize) -> Vec<String> {
    (0..total).step_by(5).map(|number| format!("w{number:03}")).collect()
}

#[test]
fn a_list_that_expires_goes_on_where_the_server_offers_to() {
    let server = ApiServer::start(|asked| {
        asked.is(WIDGETS).then(|| if asked.token == "n16" { expired("n16x") } else { page(asked, 100) })
    });
    let run = server.audit(&["-A", "-o", "json"]).code(1);
    assert_eq!(invalid(&run), every_fifth(100));
    assert_eq!(run.json()["summary"]["objects"], 100);
    assert_eq!(server.tokens(), ["", "n16", "n16x", "n80"]);
}

#[test]
fn a_list_that_expires_for_good_begins_again_and_no_object_comes_twice() {
    let server = ApiServer::start(|asked| {
        let expires = asked.token == "n16" || (asked.token == "n80" && asked.before == 0);
        asked.is(WIDGETS).then(|| if expires { expired("") } else { page(asked, 100) })
    });
    let run = server.audit(&["-A", "-o", "json"]).code(1);
    assert_eq!(invalid(&run), every_fifth(100));
    assert_eq!(run.json()["summary"]["objects"], 100);
    assert!(server.tokens().iter().filter(|token| token.is_empty()).count() >= 2);
}

#[test]
fn a_list_that_always_expires_is_said_to() {
    let server = ApiServer::start(|asked| {
        let first = || (200, list(&(0..16).map(widget).collect::<Vec<_>>(), "n16", 84));
        asked.is(WIDGETS).then(|| if asked.token.is_empty() { first() } else { expired("") })
    });
    let run = server.audit(&["-A", "-o", "json"]).code(2).says(&[
        "error: Widget.example.com/v1: cannot be listed after 16 objects: the list expires faster than it can be read; the \
         objects behind `a/w015` were not seen",
        "1 problem kept something from being audited",
    ]);
    let summary = &run.json()["summary"];
    assert_eq!((&summary["complete"], summary["notAudited"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!((&summary["objects"], invalid(&run)), (&json!(16), every_fifth(16)));
}

#[test]
fn a_list_without_an_end_is_said_to_have_none() {
    type Page = fn(&Asked) -> Answer;
    const CHECK: &str = "check the API server, and a proxy in front of it";
    let again = format!("the list does not end: its pages come again; {CHECK}");
    let empty = format!("the list does not end: 1000 pages in a row are empty; {CHECK}");
    let of_widgets =
        |after: &str, reason: &str| format!("error: Widget.example.com/v1: cannot be listed{after}: {reason}");
    let one: Page = |_| (200, list(&[widget(1)], "again", 5));
    let two: Page = |asked| (200, list(&[widget(1)], if asked.token == "n1" { "n2" } else { "n1" }, 5));
    let none: Page = |asked| (200, list(&[], &format!("n{}", asked.token.trim_start_matches('n').len() + 1), 5));
    let none_for_ever: Page = |asked| (200, list(&[], &format!("{}n", asked.token), 5));
    for (path, page, says) in [
        (WIDGETS, one, of_widgets(" after 1 object", &again)),
        (WIDGETS, two, of_widgets(" after 2 objects", &again)),
        (WIDGETS, none, of_widgets("", &again)),
        (WIDGETS, none_for_ever, of_widgets("", &empty)),
        (DEFINITIONS, one, format!("error: the cluster's unions cannot be learnt: {again}")),
    ] {
        let server = ApiServer::start(move |asked| asked.is(path).then(|| page(asked)));
        server.audit(&["-A"]).code(2).says(&[&says]);
    }
}

#[test]
fn objects_without_an_order_are_not_begun_with_again() {
    let server = ApiServer::start(|asked| {
        asked.is(WIDGETS).then(|| match &*asked.token {
            "" => (200, list(&[widget(2), widget(1)], "n16", 50)),
            _ => expired(""),
        })
    });
    server.audit(&["-A"]).code(2).says(&["cannot be listed after 2 objects: the list expires"]);
    assert_eq!(server.tokens(), ["", "n16"]);
}

/// Answers as a cluster with Gadgets, too.
fn with_gadgets(asked: &Asked) -> Option<Answer> {
    let gadget = || stored(&CRD.replace("widget", "gadget").replace("Widget", "Gadget"));
    match asked.path.as_str() {
        DEFINITIONS => Some((200, list(&[gadget(), definition()], "", 0))),
        "/apis" => {
            let mut all = discovery("example.com", &[("v1", "Gadget", "gadgets", "gd")]);
            let widgets = discovery("example.com", &[("v1", "Widget", "widgets", "wd")]);
            let more = widgets["items"][0]["versions"][0]["resources"][0].clone();
            all["items"][0]["versions"][0]["resources"].as_array_mut().unwrap().push(more);
            Some((200, all))
        }
        WIDGETS => Some(page(asked, 20)),
        _ => None,
    }
}

#[test]
fn a_kind_that_may_not_be_listed_is_named_and_the_others_are_audited() {
    let server = ApiServer::start(|asked| match asked.path.as_str() {
        "/apis/example.com/v1/gadgets" if asked.token.is_empty() => Some(page(asked, 100)),
        // Somebody took the right away meanwhile.
        "/apis/example.com/v1/gadgets" => {
            let message = "gadgets.example.com is forbidden: User \"u\" cannot list resource \"gadgets\"";
            Some((403, status(403, "Forbidden", message)))
        }
        _ => with_gadgets(asked),
    });
    let run = server.audit(&["-A", "-o", "json"]).code(2).says(&[
        "error: Gadget.example.com/v1: cannot be listed after 16 objects: Error from server (Forbidden): gadgets.example.com is \
         forbidden: User \"u\" cannot list",
        "audited 36 objects of 2 kinds: 8 invalid",
    ]);
    assert_eq!(invalid(&run), [every_fifth(16), every_fifth(20)].concat());
    let sarif = server.audit(&["-A", "-o", "sarif"]).code(2).json();
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!((&invocation["executionSuccessful"], &invocation["exitCode"]), (&json!(false), &json!(2)));
    let said = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(said.contains("is forbidden"), "{said}");
}

#[test]
fn a_server_that_is_out_of_breath_is_asked_again() {
    let server = ApiServer::start(|asked| {
        let busy = |code| (code, status(code, "TooManyRequests", "later"));
        asked.is(WIDGETS).then(|| match (&*asked.token, asked.before) {
            ("", 0 | 1) => busy(429),
            ("", 2) => busy(503),
            ("n16", 0 | 1) => busy(500),
            _ => page(asked, 60),
        })
    });
    let run = server.audit(&["-A", "-o", "json"]).code(1);
    assert_eq!((invalid(&run), run.json()["summary"]["objects"].clone()), (every_fifth(60), json!(60)));
}

#[test]
fn a_server_that_never_gets_its_breath_back_is_said_to() {
    let server =
        ApiServer::start(|asked| asked.is(WIDGETS).then(|| (500, status(500, "InternalError", "etcd is away"))));
    server
        .audit(&["-A"])
        .code(2)
        .prints("")
        .says(&["Widget.example.com/v1: cannot be listed: Error from server (InternalError): etcd is away"]);
    assert_eq!(server.requests(WIDGETS).len(), 5);
}

#[test]
fn the_size_of_a_page_follows_that_of_the_objects() {
    let weighty = |number: usize| {
        let mut object = widget(number);
        // Small ones first, then ones of half a MiB.
        object["metadata"]["annotations"] = json!({"a": "x".repeat(if number < 80 { 100 } else { 1 << 19 })});
        object
    };
    let server = ApiServer::start(move |asked| asked.is(WIDGETS).then(|| page_of(asked, 120, weighty)));
    let run = server.audit(&["-A", "-o", "json"]).code(1);
    assert_eq!(invalid(&run), every_fifth(120));
    let limits: Vec<usize> = server.requests(WIDGETS).iter().map(|it| it.limit.parse().unwrap()).collect();
    // 256 of these would be too much at once, and 32 still.
    assert_eq!(limits[..5], [16, 64, 256, 32, 4]);
    assert!(limits[5..].iter().all(|limit| *limit <= 4), "{limits:?}");
}

#[test]
fn kinds_are_asked_for_as_kubectl_takes_them_and_nothing_is_listed_for_one_that_there_is_not() {
    let server = ApiServer::start(with_gadgets);
    // The unit tests of discovery have every name.
    for kind in ["Widget", "wd.v1.example.com"] {
        let run = server.audit(&[kind, "-A", "-o", "json"]).code(1);
        assert_eq!(run.json()["kinds"], json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]), "{kind}");
    }
    let listed = server.requests(WIDGETS).len();
    for (kind, says) in [
        ("nothings", "the server doesn't have a resource type `nothings`"),
        ("widgets.v2.example.com", "the server doesn't have a resource type `widgets.v2.example.com`"),
        ("cm", "`configmaps.v1.` has no unions; those that have: Gadget.example.com/v1, Widget.example.com/v1"),
    ] {
        server.audit(&["wd", kind, "-A"]).code(2).prints("").says(&[says]);
    }
    assert_eq!(server.requests(WIDGETS).len(), listed);
}

#[test]
fn the_version_is_the_preferred_one_unless_only_another_has_unions() {
    let mut next = yaml(CRD);
    let versions = next["spec"]["versions"].as_array_mut().unwrap();
    versions.push(versions[0].clone());
    (versions[1]["name"], versions[1]["schema"]["openAPIV3Schema"]) = ("v2".into(), json!({"type": "object"}));
    let definition = stored(&next.to_string());
    let server = ApiServer::start(move |asked| match asked.path.as_str() {
        DEFINITIONS => Some((200, list(slice::from_ref(&definition), "", 0))),
        "/apis" => {
            let versions = [("v2", "Widget", "widgets", "wd"), ("v1", "Widget", "widgets", "wd")];
            Some((200, discovery("example.com", &versions)))
        }
        WIDGETS => Some(page(asked, 3)),
        _ => None,
    });
    for arguments in [&["-A"][..], &["wd", "-A"]] {
        server
            .audit(arguments)
            .code(1)
            .says(&["Widget.example.com/v1 is audited, since v2, which the server prefers, has no unions"]);
    }
    let run = server.audit(&["wd.v1.example.com", "-A"]).code(1);
    assert!(!run.stderr.contains("prefers"), "{run:?}");
    server.audit(&["wd.v2.example.com", "-A"]).code(2).says(&["`widgets.v2.example.com` has no unions"]);
}

#[test]
fn the_namespace_is_that_of_the_context_unless_another_is_asked_for() {
    let of = |namespace: &str| format!("/apis/example.com/v1/namespaces/{namespace}/widgets");
    let server = ApiServer::start(move |asked| (asked.path.ends_with("/widgets")).then(|| page(asked, 3)));
    server.audit(&[]).code(1);
    assert_eq!(server.requests(&of("b")).len(), 1);
    server.audit(&["-n", "c"]).code(1);
    assert_eq!(server.requests(&of("c")).len(), 1);
    server.audit(&["-n", "c", "-A"]).code(2).prints("").says(&["cannot be used with"]);
    server.audit(&["-n", "../../x"]).code(2).says(&["invalid name `../../x`"]);
    server.audit(&["--from", "."]).code(2).says(&["files are read without a cluster"]);
}

#[test]
fn what_the_webhook_does_not_know_either_is_said() {
    let faulty = || {
        let text = definition().to_string();
        assert_eq!(text.matches(r#"\"name\":\"rolling\""#).count(), 1, "{text}");
        yaml(&text.replace(r#"\"name\":\"rolling\""#, r#"\"name\":\"missing\""#))
    };
    let server = ApiServer::start(move |asked| match asked.path.as_str() {
        DEFINITIONS => Some((200, list(&[faulty()], "", 0))),
        DECLARATIONS => Some((403, status(403, "Forbidden", "uniondeclarations is forbidden"))),
        WIDGETS => Some(page(asked, 3)),
        _ => None,
    });
    let run = server.audit(&["-A"]).code(2).says(&[
        "Warning: 1 fault in declarations of unions; `kube-unions lint` names them",
        "error: UnionDeclarations: Error from server (Forbidden): uniondeclarations is forbidden",
        "audited 3 objects of 1 kind: 1 invalid",
    ]);
    assert_eq!(run.stdout.lines().count(), 2, "{run:?}");
    let none = ApiServer::start(|asked| asked.is(DEFINITIONS).then(|| (200, list(&[], "", 0))));
    none.audit(&["-A"]).code(2).prints("").says(&["no kind of the cluster has unions"]);
    let forbidden =
        ApiServer::start(|asked| asked.is(DEFINITIONS).then(|| (403, status(403, "Forbidden", "no CRDs for you"))));
    forbidden.audit(&["-A"]).code(2).prints("").says(&["the cluster's unions cannot be learnt", "no CRDs for you"]);
}

#[test]
fn a_second_signal_ends_it_even_while_nobody_reads() {
    let server = ApiServer::start(|asked| {
        asked.is(WIDGETS).then(|| {
            // All of them invalid: more than a pipe holds is found on the first page.
            let items: Vec<Value> = (0..1000).map(|number| widget(number * 5)).collect();
            (200, list(&items, "", 0))
        })
    });
    let mut command = server.command(&["-A", "-o", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let waiting = || rustix::io::ioctl_fionread(&stdout).unwrap();
    let deadline = Instant::now() + SOON;
    while waiting() < PIPE {
        assert!(Instant::now() < deadline, "only {} bytes were printed", waiting());
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = format!("/proc/{}/status", child.id());
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        // A signal that is still pending would take up the next one.
        let taken = || !fs::read_to_string(&status).is_ok_and(|status| is_pending(&status, Signal::INT));
        assert!(eventually(SOON, taken), "the signal is pending: {status}");
    }
    assert_eq!(child.wait().unwrap().code(), Some(2));
    drop(stdout);
}

/// A hard limit on the memory of `audit`, which a cluster of any size fits under.
#[test]
fn a_cluster_that_is_larger_than_the_memory_is_audited_page_by_page() {
    // Few objects make much text: each is far above the usual size, and together they have twice the limit.
    const LIMIT: usize = 32;
    const OBJECTS: usize = 2 * (LIMIT << 20) / (64 << 10);
    let filler = Value::from("x".repeat(64 << 10));
    let heavy = move |number| {
        let mut object = widget(number);
        object["metadata"]["annotations"] = json!({"example.com/filler": filler});
        object
    };
    let server = ApiServer::start(move |asked| asked.is(WIDGETS).then(|| page_of(asked, OBJECTS, &heavy)));
    let arguments = ["audit", "--kubeconfig=kubeconfig", "-A", "-o", "json"];
    let run = limited(&server.folder, LIMIT, &arguments, "").code(1);
    assert_eq!((&run.json()["summary"]["objects"], invalid(&run)), (&json!(OBJECTS), every_fifth(OBJECTS)));
}

/// Returns true if a process has not begun to handle a signal that was sent to it. `status` is the text of `/proc/PID/status`.
fn is_pending(status: &str, signal: Signal) -> bool {
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).expect("the signals of the process");
    let pending = u64::from_str_radix(pending.trim(), 16).expect("a set of signals");
    pending & 1 << (signal.as_raw() - 1) != 0
}
