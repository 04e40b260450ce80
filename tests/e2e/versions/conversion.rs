//! The conversion webhook of CRDs: it moves the fields of `spec` to `spec.deep` and back.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::support::pki::ServingCertificate;
use crate::support::process::Workspace;
use fixtures::certificates::TestAuthority;

/// The kind whose fields are at `spec` in v1, and at `spec.deep` in the other versions.
pub(super) const MOVED: &str = "Moved";

/// A running conversion webhook.
pub(super) struct Conversion {
    authority: TestAuthority,
    port: u16,
    _runtime: Runtime,
}

impl Conversion {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be started");
        let authority = TestAuthority::new("conversion");
        let workspace = Workspace::new("conversion");
        let acceptor = acceptor(&ServingCertificate::issue(&authority, workspace.path()));
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        runtime.spawn(accept(listener, acceptor));
        Self { authority, port, _runtime: runtime }
    }

    /// Returns `spec.conversion` of a CRD.
    pub(super) fn of_definition(&self) -> Value {
        let client = json!({
            "url": format!("https://127.0.0.1:{}/", self.port),
            "caBundle": crate::support::webhook::base64(self.authority.pem().as_bytes()),
        });
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}})
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
    let router = Router::new().route("/", post(async |review: Bytes| answer(&review).to_string()));
    loop {
        let (stream, _) = listener.accept().await.expect("the conversion webhook accepts connections");
        tokio::spawn(serve(stream, acceptor.clone(), router.clone()));
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, router: Router) -> io::Result<()> {
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    http1::Builder::new().serve_connection(stream, TowerToHyperService::new(router)).await.map_err(io::Error::other)
}

/// Answers a `ConversionReview`.
fn answer(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version is asked for");
    let objects = request["objects"].as_array().expect("objects are sent").iter();
    let converted: Vec<Value> = objects.map(|object| converted(object, desired)).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}})
}

fn converted(object: &Value, desired: &str) -> Value {
    let mut object = object.clone();
    let is_flat = |version: &Value| version.as_str().is_some_and(|version| version.ends_with("/v1"));
    let (from, to) = (is_flat(&object["apiVersion"]), desired.ends_with("/v1"));
    object["apiVersion"] = desired.into();
    if object["kind"] == MOVED && from != to {
        let spec = object["spec"].take();
        object["spec"] = if from { Map::from_iter([("deep".to_owned(), spec)]).into() } else { spec["deep"].clone() };
    }
    object
}
