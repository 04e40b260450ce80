//! A webhook that answers by the word in its path: over TLS for the real API server, by a call for the simulated one.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fixtures::certificates::TestAuthority;
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use simulated_apiserver::{CallError, WebhookCall, Webhooks};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::background::Servers;
use crate::support::pki::ServingCertificate;
use crate::support::process::Workspace;

/// The words of paths.
pub(super) const WORDS: [&str; 8] = ["allow", "warn", "deny", "refuse", "patch", "label", "break", "absent"];

/// A running webhook.
pub(super) struct TableWebhook {
    authority: TestAuthority,
    port: u16,
    _servers: Servers,
}

/// The same webhook for the simulated API server.
pub(super) struct CalledWebhook;

impl TableWebhook {
    pub(super) fn start() -> Self {
        let servers = Servers::start("table-webhook");
        let authority = TestAuthority::new("table webhook");
        let workspace = Workspace::new("table-webhook");
        let acceptor = acceptor(&ServingCertificate::issue(&authority, workspace.path()));
        let listener = servers.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        servers.spawn(accept(listener, acceptor));
        Self { authority, port, _servers: servers }
    }

    /// Returns the address of a word in an entry.
    pub(super) fn address(&self, word: &str) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}/{word}", self.port),
            "caBundle": BASE64_STANDARD.encode(self.authority.pem()),
        })
    }
}

fn acceptor(files: &ServingCertificate) -> TlsAcceptor {
    let chain = fs::read(&files.certificate).expect("the certificate can be read");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("the key can be read");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain.expect("certificates"), key);
    TlsAcceptor::from(Arc::new(config.expect("the key is that of the certificate")))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor) {
    let router = Router::new().route(
        "/{word}",
        post(async |Path(word): Path<String>, review: Bytes| {
            let review = serde_json::from_slice(&review).expect("a review is JSON");
            (StatusCode::OK, [("content-type", "application/json")], answer(&word, &review).to_string())
        }),
    );
    loop {
        let (stream, _) = listener.accept().await.expect("the webhook accepts connections");
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = TowerToHyperService::new(router);
            // The API server ends connections as it likes.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
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
