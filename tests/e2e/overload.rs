//! More large reviews at once than the processors answer within the timeout: each is answered or refused, and none is worked on after
//! its caller has gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use fixtures::crds;
use fixtures::reviews::review_text;
use serde_json::json;

use crate::process::Workspace;
use crate::tls::Connection;
use crate::webhook::Webhook;
use fixtures::wait::eventually;

/// Callers at once.
const CALLERS: usize = 40;
/// Unions of one object. The review of an update holds two objects, 2.4 MiB.
const UNIONS: usize = 35_000;
/// The API server gives up after its timeout.
const TIMEOUT: Duration = Duration::from_secs(5);
/// One review alone, in a debug build beside other tests.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the review of an update that switches every union and leaves the old members.
fn switch() -> String {
    let object = |value: &str, members: &str| {
        let item = format!(r#"{{"type":"{value}",{members}}}"#);
        format!(r#"{{"metadata":{{"name":"x"}},"spec":{{"items":[{}]}}}}"#, vec![item; UNIONS].join(","))
    };
    let [a, b] = [r#""a":"0123456789""#, r#""b":"0123456789""#];
    let (new, old) = (object("B", &format!("{a},{b}")), object("A", a));
    review_text(["overload.example", "v1", "Crowd"], "UPDATE", &new, &old)
}

#[test]
fn large_reviews_at_once_are_answered_or_refused_and_none_is_worked_on_after_its_caller_has_gone() {
    let member = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"type": {"type": "string"}, "a": member, "b": member},
        "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let workspace = Workspace::new("overload");
    let definition = crds::crd("overload.example", "Crowd", &[crds::version("v1", &schema)]);
    let definition = workspace.write("crowds.json", &definition.to_string());
    let webhook = Webhook::of_files(&definition, &[]).unwrap_or_else(|message| panic!("{message}"));
    let body = Arc::new(switch());
    let ask = |timeout: Duration, limit: Duration| {
        let mut connection = Connection::try_open(webhook.port(), webhook.ca(), limit).expect("a connection");
        connection.try_post(&format!("/mutate?timeout={}s", timeout.as_secs()), &body)?;
        connection.answer().map(|answer| answer.status)
    };
    assert_eq!(ask(Duration::from_secs(30), PATIENCE).expect("an answer"), 200, "one alone");

    let start = Barrier::new(CALLERS);
    let statuses: Vec<Option<u16>> = thread::scope(|scope| {
        let call = || {
            start.wait();
            // Without an answer within the timeout, the API server closes the connection.
            ask(TIMEOUT, TIMEOUT).ok()
        };
        let calls: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().expect("every call ends")).collect()
    });
    let mut counts = BTreeMap::<Option<u16>, usize>::new();
    for status in statuses {
        *counts.entry(status).or_default() += 1;
    }
    eprintln!("{CALLERS} at once, {} bytes each: {counts:?}", body.len());
    assert!(counts.keys().flatten().all(|status| [200, 429, 504].contains(status)), "{counts:?}");
    assert!(counts.contains_key(&Some(200)), "{counts:?}");
    for gauge in ["admission_queued", "admission_in_flight", "admission_in_flight_bytes"] {
        let gauge = format!("kube_unions_{gauge}");
        assert!(eventually(PATIENCE, || webhook.metric(&gauge) == 0), "{gauge}: {}", webhook.metric(&gauge));
    }
    assert_eq!(ask(Duration::from_secs(30), PATIENCE).expect("an answer"), 200, "one alone, afterwards");
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());
}
