//! The part of a kubelet's API that `kubectl logs` and `helm test --logs` need: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use fixtures::certificates::TestAuthority;

/// Returns the name of the file with the log of a container.
pub(super) fn file(namespace: &str, pod: &str, container: &str) -> String {
    format!("{namespace}_{pod}_{container}.log")
}

/// Serves the logs in a folder. Returns the port of loopback.
pub(super) fn serve(runtime: &Runtime, folder: &Path) -> u16 {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
    let port = listener.local_addr().expect("a listener has an address").port();
    runtime.spawn(accept(listener, acceptor(), folder.to_owned()));
    port
}

/// Returns an acceptor with a certificate that the API server does not verify, as it does not verify those of most kubelets.
fn acceptor() -> TlsAcceptor {
    let (chain, key) = TestAuthority::new("kubelet").sign(&["node-1"], |_| {});
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, folder: PathBuf) {
    loop {
        let (client, _) = listener.accept().await.expect("the node accepts connections");
        let (acceptor, folder) = (acceptor.clone(), folder.clone());
        tokio::spawn(async move {
            // The API server reports the end of the connection to its client.
            let _ = answer(client, &acceptor, &folder).await;
        });
    }
}

/// Answers one request with the log so far, and closes the connection.
async fn answer(client: TcpStream, acceptor: &TlsAcceptor, folder: &Path) -> io::Result<()> {
    let mut stream = BufReader::new(acceptor.accept(client).await?);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut header = String::new();
    while stream.read_line(&mut header).await? > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let log = match parts.as_slice() {
        ["", "containerLogs", namespace, pod, container] => fs::read(folder.join(file(namespace, pod, container))).ok(),
        _ => None,
    };
    let status = if log.is_some() { "200 OK" } else { "404 Not Found" };
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&log.unwrap_or_default()).await?;
    stream.shutdown().await
}
