//! Webhooks in admission.

use crate::definitions::{DEFINITIONS, definition};
use crate::sender::{SimulatedTime, answered, config_map, create, delete, open, pass, patch, send, server};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::Method;
use serde_json::{Value, json};
use simulated_apiserver::{ApiServer, CallError, Instance, WebhookCall, Webhooks};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Answers by the name of the entry, and notes the calls.
#[derive(Default)]
struct Table(Mutex<Vec<WebhookCall>>);

impl Webhooks for Table {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Value, CallError>> {
        let uid = call.review["request"]["uid"].clone();
        let word = call.entry.split('.').next().unwrap().to_owned();
        self.0.lock().unwrap().push(call);
        let answer = move |mut response: Value| {
            response["uid"] = uid;
            Ok(json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}))
        };
        async move {
            match &*word {
                "allow" => answer(json!({"allowed": true, "warnings": ["so \"be\" it"]})),
                "deny" => {
                    answer(json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "no"}}))
                }
                "patch" => {
                    let patch = json!([{"op": "add", "path": "/data/patched", "value": "yes"}]);
                    let patch = BASE64_STANDARD.encode(patch.to_string());
                    answer(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
                }
                "hang" => std::future::pending().await,
                "refuse" => Err(CallError::Connection("dial tcp 10.0.0.9:443: connect: connection refused".to_owned())),
                "fail" => Err(CallError::Status(500, "oops".to_owned())),
                _ => Ok(json!({})),
            }
        }
        .boxed()
    }
}

impl Table {
    fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().drain(..).map(|call| call.entry).collect()
    }
}

fn cluster() -> (ApiServer, Instance, Arc<Table>) {
    let table = Arc::new(Table::default());
    let server = server().with_webhooks(Arc::clone(&table) as Arc<dyn Webhooks>);
    let instance = server.instance();
    (server, instance, table)
}

fn entry(word: &str, more: &Value) -> Value {
    let mut entry = json!({
        "name": format!("{word}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "webhook", "path": "/mutate"}},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    });
    for (name, value) in more.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry
}

async fn configure(instance: &Instance, kind: &str, entries: &[Value]) {
    let path = format!("{GROUP}/{kind}webhookconfigurations");
    create(instance, &path, &json!({"metadata": {"name": format!("c-{kind}")}, "webhooks": entries})).await;
}

#[tokio::test(start_paused = true)]
async fn webhooks_change_warn_and_refuse() {
    let (_, instance, table) = cluster();
    configure(&instance, "mutating", &[entry("patch", &json!({})), entry("allow", &json!({}))]).await;
    let response = open(&instance, Method::POST, MAPS, "application/json", Some(&config_map("a", "1"))).await;
    assert_eq!(response.headers()["warning"], r#"299 - "so \"be\" it""#);
    let (code, created) = answered(response).await;
    assert_eq!((code, &created["data"]), (201, &json!({"key": "1", "patched": "yes"})));
    assert_eq!(table.entries(), ["patch.example.com", "allow.example.com"]);
    configure(&instance, "validating", &[entry("deny", &json!({}))]).await;
    let (code, status) = send(&instance, Method::POST, MAPS, Some(&config_map("b", "1"))).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    assert_eq!(status["message"], "admission webhook \"deny.example.com\" denied the request: no");
    let (code, _) = delete(&instance, &format!("{MAPS}/a")).await;
    assert_eq!(code, 500, "nothing can be patched");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_judged_by_the_policy_of_its_entry() {
    let (_, instance, _) = cluster();
    let url = "https://webhook.default.svc:443/mutate?timeout=10s";
    for (word, reason, seconds) in [
        ("hang", format!("failed to call webhook: Post \"{url}\": context deadline exceeded"), 10),
        (
            "refuse",
            format!("failed to call webhook: Post \"{url}\": dial tcp 10.0.0.9:443: connect: connection refused"),
            0,
        ),
        (
            "fail",
            "failed to call webhook: an error on the server (\"oops\") has prevented the request from succeeding"
                .to_owned(),
            0,
        ),
        ("garble", "received invalid webhook response: webhook response was absent".to_owned(), 0),
    ] {
        configure(&instance, "validating", &[entry(word, &json!({}))]).await;
        let time = SimulatedTime::start();
        let (code, status) = send(&instance, Method::POST, MAPS, Some(&config_map("a", "1"))).await;
        assert_eq!((code, time.seconds()), (500, seconds), "{word}");
        let wanted = format!("Internal error occurred: failed calling webhook \"{word}.example.com\": {reason}");
        assert_eq!(status["message"], wanted);
        let path = format!("{GROUP}/validatingwebhookconfigurations/c-validating");
        let ignore = json!([{"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
        assert_eq!(patch(&instance, &path, "json-patch", &ignore).await.0, 200);
        create(&instance, MAPS, &config_map("a", "1")).await;
        assert_eq!(delete(&instance, &format!("{MAPS}/a")).await.0, 200);
        assert_eq!(delete(&instance, &path).await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn conditions_and_selectors_keep_writes_from_a_webhook() {
    let (_, instance, table) = cluster();
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}});
    configure(
        &instance,
        "validating",
        &[
            entry("allow", &condition("object.data.key == '1'")),
            entry("deny", &condition("object.data.key == '2'")),
            entry("deny", &json!({"namespaceSelector": selector})),
            entry("deny", &json!({"objectSelector": {"matchLabels": {"x": "y"}}})),
        ],
    )
    .await;
    create(&instance, MAPS, &config_map("a", "1")).await;
    assert_eq!(table.entries(), ["allow.example.com"]);
    let nothing = json!({"metadata": {"name": "b"}});
    let (code, status) = send(&instance, Method::POST, MAPS, Some(&nothing)).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");
    assert!(status["message"].as_str().unwrap().contains("resulted in error"), "{status}");
    assert!(table.entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_called_again_after_a_later_change_and_a_dry_run_only_without_side_effects() {
    let (_, instance, table) = cluster();
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&instance, "mutating", &[entry("allow", &again), entry("patch", &json!({"sideEffects": "Some"}))]).await;
    create(&instance, MAPS, &config_map("a", "1")).await;
    assert_eq!(table.entries(), ["allow.example.com", "patch.example.com", "allow.example.com"]);
    let (code, status) =
        send(&instance, Method::POST, &format!("{MAPS}?dryRun=All"), Some(&config_map("b", "1"))).await;
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert_eq!(status["message"], "admission webhook \"patch.example.com\" does not support dry run");
}

#[tokio::test(start_paused = true)]
async fn another_version_of_a_kind_is_converted_for_the_webhook() {
    let (_, instance, table) = cluster();
    create(&instance, DEFINITIONS, &definition()).await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"]}]);
    let exact = json!({"rules": rules, "matchPolicy": "Exact"});
    configure(&instance, "mutating", &[entry("allow", &json!({"rules": rules})), entry("deny", &exact)]).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let created = create(&instance, "/apis/example.com/v1/namespaces/default/widgets", &widget).await;
    assert_eq!(created["apiVersion"], "example.com/v1");
    let calls = std::mem::take(&mut *table.0.lock().unwrap());
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    let request = &call.review["request"];
    assert_eq!(request["object"]["apiVersion"], "example.com/v2");
    assert_eq!((&request["kind"]["version"], &request["requestKind"]["version"]), (&json!("v2"), &json!("v1")));
    assert_eq!((call.timeout, &*call.configuration), (Duration::from_secs(10), "c-mutating"));
}

#[tokio::test(start_paused = true)]
async fn configurations_are_seen_when_the_cache_has_them() {
    let (server, instance, _) = cluster();
    let behind = server.instance();
    behind.set_lag(Duration::from_secs(5));
    configure(&instance, "validating", &[entry("deny", &json!({}))]).await;
    create(&behind, MAPS, &config_map("a", "1")).await;
    pass(5).await;
    let (code, _) = send(&behind, Method::POST, MAPS, Some(&config_map("b", "1"))).await;
    assert_eq!(code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_after_34_seconds() {
    let (server, instance, _) = cluster();
    let slow = json!({"failurePolicy": "Ignore", "timeoutSeconds": 20});
    configure(&instance, "mutating", &[entry("hang", &slow), entry("hang", &slow)]).await;
    let time = SimulatedTime::start();
    let (code, status) = send(&instance, Method::POST, MAPS, Some(&config_map("a", "1"))).await;
    assert_eq!((code, &status["reason"], time.seconds()), (504, &json!("Timeout"), 34));
    assert!(server.object("", "configmaps", "default", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_no_cel_is_refused() {
    let (_, instance, _) = cluster();
    let conditions = json!({"matchConditions": [{"name": "c", "expression": "1 +"}]});
    let configuration = json!({"metadata": {"name": "c"}, "webhooks": [entry("allow", &conditions)]});
    let path = format!("{GROUP}/mutatingwebhookconfigurations");
    let (code, status) = send(&instance, Method::POST, &path, Some(&configuration)).await;
    let cause = &status["details"]["causes"][0];
    assert_eq!((code, &cause["field"]), (422, &json!("webhooks[0].matchConditions[0].expression")));
    assert!(cause["message"].as_str().unwrap().contains("compilation failed"), "{cause}");
}
