//! A server in this process, and a client that sends exact bytes.

use fixtures::reviews;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use kube_unions_webhook::telemetry::Metrics;
use kube_unions_webhook::webhook::{Addresses, CertificateSource, Config, Inspector, Server, ServerState, Timeouts};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ALL_VERSIONS, ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

pub(crate) use fixtures::wait::SOON;

/// A running server with its channels.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    pub(crate) catalogs: watch::Sender<Option<Arc<Catalog>>>,
    /// The CA of the server, PEM, unless the test has its own certificate.
    pub(crate) authority: String,
    pub(crate) tls: Arc<ClientConfig>,
    /// Returns true if the server is ready.
    pub(crate) ready: Box<dyn Fn() -> bool + Send + Sync>,
    stop: Option<oneshot::Sender<()>>,
    end: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Running {
    /// Starts a server with an empty catalog.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let running = Self::without_catalog(change).await;
        running.catalogs.send_replace(Some(Arc::default()));
        running.until_ready().await;
        running
    }

    /// Starts a server with an empty catalog, which inspects at the path of [`token`].
    pub(crate) async fn inspecting(inspector: Inspector) -> Self {
        let tokens = watch::Sender::new(Some(token())).subscribe();
        Self::with(|config| config.inspections = Some((inspector, tokens))).await
    }

    pub(crate) async fn without_catalog(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ca_file = directory.path().join("ca.crt");
        let mut config = config(CertificateSource::SelfSigned { ca_file: ca_file.clone() });
        change(&mut config);
        let state = ServerState::new(config, Metrics::new()).unwrap();
        let ready = Box::new(state.readiness());
        let server = Server::bind(state).await.unwrap();
        let authority = std::fs::read_to_string(&ca_file).unwrap_or_default();
        let tls = trusting(&authority, None);
        let addresses = server.addresses();
        let (catalogs, receiver) = watch::channel(None);
        let (stop, stopped) = oneshot::channel::<()>();
        let end = tokio::spawn(async {
            let stop = async { stopped.await.unwrap_or_default() };
            server.run(receiver, stop).await.unwrap();
        });
        Self { addresses, catalogs, authority, tls, ready, stop: Some(stop), end, _directory: directory }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::tls(self.addresses.webhook, Arc::clone(&self.tls)).await.unwrap()
    }

    /// Sends one request on a new connection.
    pub(crate) async fn send(&self, request: &Request) -> Answer {
        self.connect().await.exchange(request).await
    }

    /// Sends one request on a new connection, whose answer is not read.
    pub(crate) async fn sent(&self, request: &Request) -> Wire {
        let mut wire = self.connect().await;
        wire.send(request).await;
        wire
    }

    /// Connects from this loopback address.
    pub(crate) async fn connect_from(&self, address: Ipv4Addr) -> std::io::Result<Wire> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((address, 0).into())?;
        Wire::over(socket.connect(self.addresses.webhook).await?, Arc::clone(&self.tls)).await
    }

    /// Sends GET to the ops port.
    pub(crate) async fn ops(&self, path: &str) -> Answer {
        Wire::plain(self.addresses.ops).await.exchange(&Request::get(path)).await
    }

    /// Returns the value of a series with its labels; `None` if `/metrics` does not show it.
    pub(crate) async fn metric(&self, series: &str) -> Option<f64> {
        let text = self.ops("/metrics").await.body;
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    pub(crate) async fn until_ready(&self) {
        until(async || self.ops("/readyz").await.code == 200).await;
    }

    /// Stops the server.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the end of the server.
    pub(crate) async fn ended(self) {
        tokio::time::timeout(SOON, self.end).await.expect("the server ends").unwrap();
    }
}

/// The token that [`Running::inspecting`] expects.
pub(crate) fn token() -> InspectionToken {
    InspectionToken::from_random(*b"that of a server")
}

/// A reserved loopback address that refuses connections.
pub(crate) struct Nobody(TcpSocket);

impl Nobody {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// Returns a configuration with free ports on loopback, and with timeouts that a busy machine never reaches. A test of a timeout
/// sets it.
pub(crate) fn config(certificate: CertificateSource) -> Config {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let never = Duration::from_hours(1);
    let timeouts = Timeouts {
        handshake: never,
        first_byte: never,
        header: never,
        body: never,
        idle: never,
        write: never,
        memory: never,
        finish: never,
    };
    Config { webhook: any, ops: any, shutdown_delay: Duration::ZERO, timeouts, ..Config::new(certificate) }
}

/// Asks again until it holds.
pub(crate) async fn until(holds: impl AsyncFn() -> bool) {
    fixtures::wait::until("what is waited for happens", holds).await;
}

/// Returns a TLS client that trusts CAs, PEM, with an optional certificate: chain and key, PEM.
pub(crate) fn trusting(authorities: &str, identity: Option<&(String, String)>) -> Arc<ClientConfig> {
    speaking(ALL_VERSIONS, authorities, identity)
}

/// Returns a TLS client that speaks these versions.
pub(crate) fn speaking(
    versions: &[&'static SupportedProtocolVersion],
    authorities: &str,
    identity: Option<&(String, String)>,
) -> Arc<ClientConfig> {
    let certificates =
        |pem: &str| CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect::<Vec<_>>();
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities) {
        roots.add(authority).unwrap();
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(certificates(chain), key).unwrap()
        }
    })
}

/// A request in bytes.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn get(path: &str) -> Self {
        Self { head: format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"), body: Vec::new() }
    }

    /// Returns a POST of JSON.
    pub(crate) fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::typed(path, "application/json", body)
    }

    pub(crate) fn typed(path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        Self { head, body }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// One connection.
pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) async fn tls(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<Self> {
        Self::over(TcpStream::connect(address).await?, config).await
    }

    /// Starts TLS on an open connection.
    pub(crate) async fn over(stream: TcpStream, config: Arc<ClientConfig>) -> std::io::Result<Self> {
        // Without this, the body would wait until the server acknowledges the head.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Self { stream: Box::new(stream), buffer: Vec::new() })
    }

    pub(crate) async fn plain(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        self.write(request.head.as_bytes()).await;
        self.write(&request.body).await;
    }

    pub(crate) async fn exchange(&mut self, request: &Request) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// Returns `None` if the connection closes.
    pub(crate) async fn try_exchange(&mut self, request: &Request) -> Option<Answer> {
        self.stream.write_all(request.head.as_bytes()).await.ok()?;
        self.stream.write_all(&request.body).await.ok()?;
        self.stream.flush().await.ok()?;
        self.try_answer().await
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        tokio::time::timeout(SOON, self.try_answer()).await.expect("an answer comes").expect("the connection stands")
    }

    /// Sends the first half of a request and returns the rest, once the server reads the body.
    pub(crate) async fn begin<'a>(&mut self, request: &'a Request) -> &'a [u8] {
        let head = request.head.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
        self.write(head.as_bytes()).await;
        assert_eq!(self.answer().await.code, 100);
        let (begin, end) = request.body.split_at(request.body.len() / 2);
        self.write(begin).await;
        end
    }

    /// Returns `None` if the connection closes without an answer.
    pub(crate) async fn try_answer(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                break at;
            }
            self.more().await?;
        };
        let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().lines();
        let code = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        // `100 Continue` has none.
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |it| it.1.parse().unwrap());
        while self.buffer.len() < length {
            self.more().await?;
        }
        let body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Some(Answer { code, headers, body })
    }

    /// Returns every byte that the server sends until it closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        self.closed().await;
        std::mem::take(&mut self.buffer)
    }

    /// Waits until the server closes.
    pub(crate) async fn closed(&mut self) {
        let closed = async { while self.more().await.is_some() {} };
        tokio::time::timeout(SOON, closed).await.expect("the server closes");
    }

    /// Reads a little of an answer. Returns the number of bytes, 0 at the end of the connection.
    pub(crate) async fn trickle(&mut self) -> usize {
        self.stream.read(&mut [0; 8 * 1024]).await.unwrap_or_default()
    }

    async fn more(&mut self) -> Option<()> {
        self.stream.read_buf(&mut self.buffer).await.ok().filter(|read| *read > 0).map(drop)
    }
}

/// Returns a review of an object of a kind without unions.
pub(crate) fn review(uid: &str) -> String {
    let object = json!({"apiVersion": "nobody.example/v1", "kind": "Stranger", "metadata": {"name": "x"}});
    reviews::review(uid, "CREATE", Some(&object), None).to_string()
}

/// Returns a review of this length.
pub(crate) fn padded_review(uid: &str, bytes: usize) -> String {
    let short = review(uid);
    short.clone() + &" ".repeat(bytes - short.len())
}
