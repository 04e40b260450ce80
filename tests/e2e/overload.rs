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
use fixtures::wait::{eventually, for_some};

/// Callers at once.
const CALLERS: usize = 40;
/// Unions of one object. The review of an update holds two objects, 2.4 MiB.
const UNIONS: usize = 35_000;
/// The timeout of the API server for most callers. One review alone may take as long in a debug build beside other tests.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest timeout of the API server, for the other callers.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The callers with the longest timeout, who ask again after a refusal.
const PATIENT: usize = 2;
/// The deadline of a condition.
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
    assert_eq!(ask(LONGEST_TIMEOUT, PATIENCE).expect("an answer"), 200, "one alone");

    let start = Barrier::new(CALLERS);
    let statuses: Vec<Option<u16>> = thread::scope(|scope| {
        let (start, ask) = (&start, &ask);
        let calls: Vec<_> = (0..CALLERS)
            .map(|number| {
                scope.spawn(move || {
                    start.wait();
                    // Without an answer within the timeout, the API server closes the connection.
                    let answer = |timeout| ask(timeout, timeout).ok();
                    if number >= PATIENT {
                        return answer(TIMEOUT);
                    }
                    for_some(PATIENCE, || answer(LONGEST_TIMEOUT).filter(|status| *status == 200))
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().expect("every call ends")).collect()
    });
    let mut counts = BTreeMap::<Option<u16>, usize>::new();
    for status in &statuses {
        *counts.entry(*status).or_default() += 1;
    }
    let metrics = webhook.ops().get("/metrics").expect("the webhook has metrics");
    let ends =
        metrics.text().lines().filter(|line| line.contains("_refused_total{") || line.contains("_given_up_total{"));
    eprintln!("{}", ends.collect::<Vec<_>>().join("\n"));
    eprintln!("{CALLERS} at once, {} bytes each: {counts:?}", body.len());
    assert_eq!(statuses[..PATIENT], [Some(200); PATIENT], "{counts:?}");
    assert!(counts.keys().flatten().all(|status| [200, 429, 504].contains(status)), "{counts:?}");
    for gauge in ["admission_queued", "admission_in_flight", "admission_in_flight_bytes"] {
        let gauge = format!("kube_unions_{gauge}");
        assert!(eventually(PATIENCE, || webhook.metric(&gauge) == 0), "{gauge}: {}", webhook.metric(&gauge));
    }
    assert_eq!(ask(LONGEST_TIMEOUT, PATIENCE).expect("an answer"), 200, "one alone, afterwards");
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());
}
