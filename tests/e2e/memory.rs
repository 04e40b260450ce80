//! The webhook under a hard limit on its memory, against bodies that are made to cost as much as they can.

use fixtures::api_server::{DECLARATIONS, DEFINITIONS, Loopback, SERVICES};
use fixtures::crds;
use fixtures::object_server::ObjectServer;
use fixtures::reviews::review_text;
use fixtures::wait::eventually;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::background::Background;
use crate::support::cluster::some_or_all;
use crate::support::process::Workspace;
use crate::support::tls::Connection;
use crate::support::webhook::Webhook;

/// `ulimit -d` in KiB: 256 MiB of data, which is all of the heap and the stacks of threads.
const LIMIT: &str = "-d 262144";

const MIB: usize = 1024 * 1024;

/// Longest body by default.
const LARGEST: usize = 7 * MIB;

/// As long as a debug build may take for the largest body, with others beside it.
const PATIENCE: Duration = Duration::from_mins(3);

#[test]
fn no_body_takes_more_memory_than_the_limit_and_small_reviews_are_answered_meanwhile() {
    let workspace = Workspace::new("memory");
    let definition = workspace.write("things.json", &definition().to_string());
    let mut webhook = Webhook::with_open_files(&definition, LIMIT).unwrap_or_else(|message| panic!("{message}"));
    let bodies: Vec<(String, String)> = attacks();
    for (name, body) in &bodies {
        // A create has the most faults, and an update the most patches.
        let costliest = if name.ends_with("CREATE") { ["/validate"] } else { ["/mutate"] };
        for path in some_or_all(&costliest[..], &["/mutate", "/validate"]) {
            let status = ask(webhook.port(), webhook.ca(), path, body);
            assert_ne!(status, 429, "{name} at {path}: alone there is nobody to wait for");
            webhook.process().assert_running();
            eprintln!("{name} alone at {path}: {} bytes, {status}, peak {} MiB", body.len(), peak(&webhook) / MIB);
        }
    }

    let answered = Arc::<AtomicUsize>::default();
    let small = {
        let (answered, port, ca) = (Arc::clone(&answered), webhook.port(), webhook.ca().to_owned());
        let body = review("CREATE", r#"{"items":[{"type":"M0","m0":1}]}"#, "null");
        Background::start([move || {
            assert_eq!(ask(port, &ca, "/validate", &body), 200, "a small review");
            answered.fetch_add(1, Ordering::Relaxed);
        }])
    };
    let mut counts = BTreeMap::<u16, usize>::new();
    // Each has been alone: what stands beside it is the same for all that are waited for.
    for first in (0..bodies.len()).step_by(some_or_all(10, 5)) {
        let at_once: Vec<_> = (0..16)
            .map(|number| {
                let body = bodies[(first + number / 4) % bodies.len()].1.clone();
                let (port, ca) = (webhook.port(), webhook.ca().to_owned());
                let path = if number % 2 == 0 { "/mutate" } else { "/validate" };
                thread::spawn(move || ask(port, &ca, path, &body))
            })
            .collect();
        for one in at_once {
            *counts.entry(one.join().expect("an answer")).or_default() += 1;
        }
        webhook.process().assert_running();
    }
    small.finish();
    let answered = answered.load(Ordering::Relaxed);
    eprintln!("sixteen at once: {counts:?}; {answered} small reviews answered; peak {} MiB", peak(&webhook) / MIB);
    assert!(answered > 0);
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());
}

#[test]
fn definitions_of_twice_the_limit_are_read_under_it() {
    const DEFINITIONS_IN_ALL: usize = 512;
    let padding = "a".repeat(MIB);
    let server = Loopback::start(move |call| match &*call.path {
        DEFINITIONS if call.is_watch() => call.ignore(),
        DEFINITIONS => {
            let number = |name| call.parameter(name).and_then(|text| text.parse::<usize>().ok());
            let first = number("continue").unwrap_or_default();
            let next = (first + number("limit").expect("a list is read in pages")).min(DEFINITIONS_IN_ALL);
            let items: Vec<_> = (first..next).map(|at| long_definition(at, &padding)).collect();
            call.page(&items, &if next < DEFINITIONS_IN_ALL { next.to_string() } else { String::new() });
        }
        DECLARATIONS | SERVICES if !call.is_watch() => call.page(&[], ""),
        _ if call.is_watch() => call.ignore(),
        _ => call.not_found(),
    });
    let workspace = Workspace::new("definitions");
    let kubeconfig = kubeconfig(&workspace, &server);
    let mut webhook = Webhook::unready_with(&kubeconfig, &[], &[("OPEN_FILES", LIMIT.to_owned())]).unwrap();
    let in_force = || {
        webhook.process().assert_running();
        let unions = webhook.series("kube_unions_catalog_unions");
        unions.contains(&("kube_unions_catalog_unions{source=\"schema\"}".to_owned(), DEFINITIONS_IN_ALL as u64))
    };
    assert!(eventually(PATIENCE, in_force), "{}", webhook.log());
    eprintln!("{DEFINITIONS_IN_ALL} definitions of one MiB: peak {} MiB", peak(&webhook) / MIB);
}

#[test]
fn declarations_that_are_gone_leave_nothing_and_their_memory_is_printed() {
    // The declarations come in groups, so that there is a catalog now and then.
    const GROUP: usize = 25;
    let declarations: usize = some_or_all(500, 1_000);
    let members = json!({"spec": "Spec", "data": "Data"});
    let missing = |number: usize| {
        json!({"target": {"group": "watch.example", "kind": format!("Kind{number}")},
            "unions": [{"path": "", "fieldsToDiscriminateBy": members}]})
    };
    let objects = ObjectServer::with(|it| {
        it.define("Apple");
        it.declarations = Some(BTreeMap::new());
    });
    let server = Loopback::start(objects.answers());
    let workspace = Workspace::new("declarations");
    let kubeconfig = kubeconfig(&workspace, &server);
    let start = || Webhook::of_cluster(&kubeconfig, &[]).unwrap_or_else(|message| panic!("{message}"));
    let said = |webhook: &Webhook, what: &str, before: usize| {
        let now = status_bytes(webhook, "VmRSS:");
        let each = now.saturating_sub(before) / declarations / 1024;
        eprintln!("{declarations} declarations {what}: {} MiB, {each} KiB for each", now / MIB);
    };

    let webhook = start();
    let (digest, before) = (webhook.metric("kube_unions_catalog_digest"), status_bytes(&webhook, "VmRSS:"));
    for number in 0..declarations {
        objects.set(|it| it.declare(&format!("declaration-{number:05}"), &missing(number)));
        if (number + 1).is_multiple_of(GROUP) {
            assert!(eventually(PATIENCE, || objects.judged() == number + 1), "{}", webhook.log());
        }
    }
    said(&webhook, "one after the other", before);
    eprintln!("peak {} MiB, before {} MiB", peak(&webhook) / MIB, before / MIB);
    assert_ne!(webhook.metric("kube_unions_catalog_digest"), digest);
    let restarted = start();
    said(&restarted, "after a restart", before);
    objects.set(|it| (0..declarations).for_each(|number| it.withdraw(&format!("declaration-{number:05}"))));
    let forgotten = |webhook: &Webhook| webhook.metric("kube_unions_catalog_digest") == digest;
    assert!(eventually(PATIENCE, || forgotten(&webhook) && forgotten(&restarted)), "{}", webhook.log());
    said(&webhook, "that are gone", before);
    said(&restarted, "that are gone, after a restart", before);
}

/// Returns the kubeconfig of a server.
fn kubeconfig(workspace: &Workspace, server: &Loopback) -> PathBuf {
    let context = json!({"cluster": "c", "user": "u"});
    let kubeconfig = json!({
        "clusters": [{"name": "c", "cluster": {"server": server.url()}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
    });
    workspace.write("kubeconfig", &kubeconfig.to_string())
}

/// Returns a CRD of more than one MiB, with one union.
fn long_definition(at: usize, padding: &str) -> String {
    let union = json!({"fields-to-discriminateBy": {"a": "A", "b": "B"}});
    let text = json!({"type": "string", "description": padding});
    let schema = json!({
        "type": "object", "properties": {"a": text, "b": {"type": "string"}}, "x-kubernetes-unions": [union],
    });
    let kind = format!("Kind{at}");
    let mut definition = crds::crd("memory.example.com", &kind, &[crds::version("v1", &schema)]);
    definition["status"] = crds::established(&crds::names(&kind));
    definition.to_string()
}

/// Returns the status of the answer, which is a review, or a refusal that says what to do.
fn ask(port: u16, ca: &str, path: &str, body: &str) -> u16 {
    let mut connection = Connection::try_open(port, ca, PATIENCE).expect("a connection");
    connection.try_post(path, body).expect("a request can be sent");
    let answer = connection.answer().expect("an answer");
    match answer.status {
        200 | 413 => {}
        429 => assert_eq!(answer.header("retry-after"), Some("1")),
        other => panic!("{other}: {answer:?}"),
    }
    answer.status
}

/// The most resident memory so far, bytes.
fn peak(webhook: &Webhook) -> usize {
    status_bytes(webhook, "VmHWM:")
}

/// Returns an amount of memory of the process, bytes.
fn status_bytes(webhook: &Webhook, what: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", webhook.pid())).expect("the webhook runs");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("a process has memory");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number of KiB") * 1024
}

/// A kind with unions of both forms, of up to 128 members, in every sort of place.
pub(crate) fn definition() -> Value {
    let members = |count: usize| (0..count).map(|at| (format!("m{at}"), json!({"x-kubernetes-int-or-string": true})));
    let union = |count: usize, discriminated: bool| {
        let mut properties: serde_json::Map<String, Value> = members(count).collect();
        let choices: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("m{at}"), json!(format!("M{at}")))).collect();
        let mut union = json!({"fields-to-discriminateBy": choices});
        if discriminated {
            properties.insert("type".to_owned(), json!({"type": "string"}));
            union["discriminator"] = json!("type");
        }
        json!({"type": "object", "properties": properties, "x-kubernetes-unions": [union]})
    };
    let mut map_form = json!({"type": "object", "properties": members(30).collect::<serde_json::Map<_, _>>()});
    let choices: serde_json::Map<String, Value> =
        (0..30).map(|at| (format!("M{at}"), json!({"name": format!("m{at}"), "optional": true}))).collect();
    map_form["properties"]["type"] = json!({"type": "string", "x-kubernetes-unions": {"fieldMembers": choices}});
    let mut keyed = map_form.clone();
    keyed["properties"]["k"] = json!({"type": "string"});
    keyed["required"] = json!(["k"]);
    let list = |items: Value| json!({"type": "array", "items": items});
    let spec = json!({"type": "object", "properties": {
        "items": list(union(128, true)),
        "plain": list(union(100, false)),
        "keyed": {"type": "array", "items": keyed, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        "named": {"type": "object", "additionalProperties": map_form},
        "deep": list(list(list(union(2, true)))),
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    crds::crd("memory.example.com", "Thing", &[crds::version("v1", &schema)])
}

/// The item of a list at a position.
type Item = Box<dyn Fn(usize) -> String>;

/// Bodies by name: what they are made of, as a create of up to the largest size and as an update.
pub(crate) fn attacks() -> Vec<(String, String)> {
    let fill = |bytes: usize, open: &str, close: &str, item: &dyn Fn(usize) -> String| {
        let mut text = open.to_owned();
        for number in 0.. {
            let item = item(number);
            if text.len() + item.len() + close.len() + 1 > bytes {
                break;
            }
            if number > 0 {
                text.push(',');
            }
            text.push_str(&item);
        }
        text + close
    };
    let all = |count: usize| (0..count).map(|at| format!(r#""m{at}":1"#)).collect::<Vec<_>>().join(",");
    let (hundred, thirty, most) = (all(100), all(30), all(128));
    let shapes: Vec<(&str, &str, &str, Item)> = vec![
        ("a million empty items", r#"{"items":["#, "]}", Box::new(|_| "{}".to_owned())),
        ("scalars", r#"{"items":["#, "]}", Box::new(|_| "0".to_owned())),
        ("one member", r#"{"items":["#, "]}", Box::new(|_| r#"{"m127":1}"#.to_owned())),
        ("128 members", r#"{"items":["#, "]}", Box::new(move |_| format!("{{{most}}}"))),
        ("100 members without a discriminator", r#"{"plain":["#, "]}", Box::new(move |_| format!("{{{hundred}}}"))),
        ("deep nests", r#"{"deep":["#, "]}", Box::new(|_| r#"[[{"m0":1}]]"#.to_owned())),
        ("deep nothing", r#"{"deep":["#, "]}", Box::new(|_| "[[]]".to_owned())),
        ("keys", r#"{"keyed":["#, "]}", Box::new(|at| format!(r#"{{"k":"{at}"}}"#))),
        ("keys with 30 members", r#"{"keyed":["#, "]}", Box::new(move |at| format!(r#"{{"k":"{at}",{thirty}}}"#))),
        ("unknown values", r#"{"named":{"#, "}}", Box::new(|at| format!(r#""{at}":{{"type":"?","m0":1}}"#))),
        ("one key", r#"{"named":{"#, "}}", Box::new(|_| r#""":{}"#.to_owned())),
        ("keys with escapes", r#"{"named":{"#, "}}", Box::new(|at| format!(r#""\u0041{at}":{{"type":"\u0041"}}"#))),
        ("contradictions", r#"{"items":["#, "]}", Box::new(|_| r#"{"type":"M0","m1":1,"m2":1}"#.to_owned())),
        ("one string with escapes", r#"{"x":""#, r#""}"#, Box::new(|_| r"\u0041".to_owned())),
        ("brackets", r#"{"x":"#, "}", Box::new(|_| "0".to_owned())),
    ];
    let mut bodies = Vec::new();
    for (name, open, close, item) in shapes {
        for (operation, bytes, levels) in [("CREATE", LARGEST - 1024, 3 * MIB), ("UPDATE", LARGEST / 2 - 1024, MIB)] {
            let spec = if name == "brackets" {
                format!("{open}{}{}{close}", "[".repeat(levels), "]".repeat(levels))
            } else {
                fill(bytes, open, close, &item)
            };
            let old = if operation == "CREATE" { "null" } else { &spec };
            bodies.push((format!("{name}, {operation}"), review(operation, &spec, old)));
        }
    }
    // A switch of every item: as much patch as can be.
    let thirty = all(30);
    let switched = fill(LARGEST / 8, r#"{"keyed":["#, "]}", &|at| format!(r#"{{"k":"{at}","type":"M0",{thirty}}}"#));
    let before = fill(LARGEST / 8, r#"{"keyed":["#, "]}", &|at| format!(r#"{{"k":"{at}","type":"M1",{thirty}}}"#));
    bodies.push(("a switch of every item, UPDATE".to_owned(), review("UPDATE", &switched, &before)));
    bodies
}

fn review(operation: &str, new: &str, old: &str) -> String {
    let object = |spec: &str| format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#);
    let old = if old == "null" { old.to_owned() } else { object(old) };
    review_text(["memory.example.com", "v1", "Thing"], operation, &object(new), &old)
}
