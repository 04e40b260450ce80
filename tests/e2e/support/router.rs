//! A server that a test plays for an API server: a router over TLS, on loopback.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use fixtures::certificates::TestAuthority;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::background::Servers;
use crate::support::pki::ServingCertificate;
use crate::support::process::Workspace;
use crate::support::webhook::base64;

/// A running server.
pub(crate) struct RouterServer {
    authority: TestAuthority,
    port: u16,
    _servers: Servers,
}

impl RouterServer {
    pub(crate) fn start(name: &str, router: Router) -> Self {
        let servers = Servers::start(name);
        let authority = TestAuthority::new(name);
        let workspace = Workspace::new(name);
        let acceptor = acceptor(&ServingCertificate::issue(&authority, workspace.path()));
        let listener = servers.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        servers.spawn(accept(listener, acceptor, router));
        Self { authority, port, _servers: servers }
    }

    /// Returns the `clientConfig` of a path, which begins with `/`.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}{path}", self.port),
            "caBundle": base64(self.authority.pem().as_bytes()),
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

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.expect("the server accepts connections");
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            // The API server ends connections as it likes.
            let _ = served.await;
        });
    }
}
