//! A webhook that answers by the word in its path: over TLS for the real API server, by a call for the simulated one.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use simulated_apiserver::{CallError, WebhookCall, Webhooks};

use crate::support::router::RouterServer;

/// The words of paths.
pub(super) const WORDS: [&str; 8] = ["allow", "warn", "deny", "refuse", "patch", "label", "break", "absent"];

/// A running webhook.
pub(super) struct TableWebhook(RouterServer);

/// The same webhook for the simulated API server.
pub(super) struct CalledWebhook;

impl TableWebhook {
    pub(super) fn start() -> Self {
        let router = Router::new().route(
            "/{word}",
            post(async |Path(word): Path<String>, review: Bytes| {
                let review = serde_json::from_slice(&review).expect("a review is JSON");
                (StatusCode::OK, [("content-type", "application/json")], answer(&word, &review).to_string())
            }),
        );
        Self(RouterServer::start("table-webhook", router))
    }

    /// Returns the address of a word in an entry.
    pub(super) fn address(&self, word: &str) -> Value {
        self.0.client_config(&format!("/{word}"))
    }
}

impl Webhooks for CalledWebhook {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Value, CallError>> {
        let url = call.client_config.url.unwrap_or_default();
        let word = url.rsplit('/').next().unwrap_or_default().to_owned();
        async move { Ok(answer(&word, &call.review)) }.boxed()
    }
}

/// Returns the answer to a review.
fn answer(word: &str, review: &Value) -> Value {
    let uid = &review["request"]["uid"];
    let patched = |patch: Value| {
        let patch = BASE64_STANDARD.encode(patch.to_string());
        json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch})
    };
    let name = review["request"]["name"].as_str().unwrap_or_default();
    let response = match word {
        "warn" => json!({"uid": uid, "allowed": true, "warnings": [format!("beware of \"{name}\"")]}),
        "deny" => json!({"uid": uid, "allowed": false}),
        "refuse" => json!({"uid": uid, "allowed": false, "status": {
            "code": 422, "reason": "Invalid", "message": format!("{name} is refused"),
        }}),
        "patch" if review["request"]["object"]["metadata"].is_object() => {
            let annotations = review["request"]["object"]["metadata"]["annotations"].clone();
            let mut annotations = annotations.as_object().cloned().unwrap_or_default();
            annotations.insert("patched".to_owned(), json!(review["request"]["operation"]));
            patched(json!([{"op": "add", "path": "/metadata/annotations", "value": annotations}]))
        }
        "label" if review["request"]["object"]["metadata"].is_object() => {
            patched(json!([{"op": "add", "path": "/metadata/labels", "value": {"player": "labelled"}}]))
        }
        "break" => patched(json!([{"op": "remove", "path": "/metadata/nothing"}])),
        "absent" => return json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
        word if word.starts_with("probe-") => {
            json!({"uid": uid, "allowed": false, "status": {"message": word}})
        }
        _ => json!({"uid": uid, "allowed": true}),
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}
