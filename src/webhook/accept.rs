//! The accept loop of one listener: each connection runs on its own task, until it closes, is evicted, or the server stops.
//!
//! It must not know what a request asks: `routes` answers. `connections` bounds the number of connections, and
//! `deadline_stream` their waits.

use super::Timeouts;
use super::certificate::CertificateReloader;
use super::connections::{Activity, Connection, Connections};
use super::deadline_stream::DeadlineStream;
use super::lanes::Lanes;
use axum::Router;
use axum::body::HttpBody as _;
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

/// The stage of the server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Serving,
    /// The server is unready, and closes each connection after its next answer.
    Draining,
    /// The server accepts no more connections.
    Finishing,
}

/// Pause after a failed `accept`. The usual cause is a lack of file descriptors, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of the HTTP buffers for a request, and for an answer's header: the least that hyper allows. The budget counts the
/// bodies. hyper refuses a longer header with 431; the API server's has less than a thousand bytes.
const HTTP_BUFFER: usize = 8 * 1024;

/// Bytes of an answer that TLS buffers while the client does not read: one record.
const TLS_BUFFER: usize = 16 * 1024;

/// Everything that the connections of one listener share.
pub(super) struct Acceptor {
    /// `None` on a port with plain HTTP.
    pub(super) certificate: Option<Arc<CertificateReloader>>,
    pub(super) router: Router,
    /// Without lanes, connections run on the runtime that accepts them.
    pub(super) lanes: Lanes,
    pub(super) connections: Arc<Connections>,
    pub(super) timeouts: Timeouts,
    pub(super) stage: watch::Receiver<Stage>,
}

impl Acceptor {
    /// Serves `listener` until [`Stage::Finishing`], and then waits for the requests in flight.
    pub(super) async fn run(self, listener: TcpListener) {
        let this = Arc::new(self);
        let mut stage = this.stage.clone();
        let mut finishing = pin!(finishing(&mut stage));
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
                () = &mut finishing => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if concerns_one_connection(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    this.connections.evict();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // After `accept`, not before: an eviction is due only when another connection is here.
            let connection = tokio::select! {
                connection = this.connections.admit(peer.ip().to_canonical()) => connection,
                () = &mut finishing => break,
            };
            if let Some(connection) = connection {
                this.start(stream, connection, &mut tasks);
            } else {
                tracing::debug!(%peer, "connection refused: its address has reached its limit");
            }
        }
        drop(listener);
        let end = tokio::time::Instant::now() + this.timeouts.finish;
        while let Ok(Some(_)) = tokio::time::timeout_at(end, tasks.join_next()).await {}
        if !tasks.is_empty() {
            tracing::warn!(connections = tasks.len(), "connections cut off because they did not finish in time");
        }
        tasks.shutdown().await;
    }

    /// Serves a connection on a lane.
    fn start(self: &Arc<Self>, stream: TcpStream, connection: Connection, tasks: &mut JoinSet<()>) {
        let (this, connection) = (Arc::clone(self), Arc::new(connection));
        let Some((runtime, load)) = self.lanes.least_loaded() else {
            tasks.spawn(this.serve(stream, connection));
            return;
        };
        // The lane's own runtime has to wait for the socket.
        let moved = stream.into_std();
        let served = async move {
            match moved.and_then(TcpStream::from_std) {
                Ok(stream) => this.serve(stream, connection).await,
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
            drop(load);
        };
        tasks.spawn_on(served, runtime);
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, connection: Arc<Connection>) {
        // Answers are small, and each is one write.
        stream.set_nodelay(true).ok();
        match &self.certificate {
            None => self.serve_http(stream, connection).await,
            Some(certificate) => {
                // Without a certificate the server closes at once, so that the client retries soonest.
                let Some(config) = certificate.config() else { return };
                let handshake =
                    TlsAcceptor::from(config).accept_with(stream, |tls| tls.set_buffer_limit(Some(TLS_BUFFER)));
                let handshake = tokio::select! {
                    handshake = tokio::time::timeout(self.timeouts.handshake, handshake) => handshake,
                    () = connection.evicted() => return,
                };
                match handshake {
                    Ok(Ok(stream)) => self.serve_http(stream, connection).await,
                    // Port probes and clients with another CA would fill the log.
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_elapsed) => tracing::debug!("TLS handshake timed out"),
                }
            }
        }
    }

    /// Speaks HTTP/1.1 on `stream`.
    async fn serve_http<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, connection: Arc<Connection>) {
        let stream = DeadlineStream::new(stream, Arc::clone(&connection), self.timeouts);
        let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
            if request.body().is_end_stream() {
                connection.mark(Activity::Busy);
            } else {
                connection.mark(Activity::Body);
            }
            request.extensions_mut().insert(Arc::clone(&connection));
            let answer = self.router.clone().call(request);
            let (connection, stage) = (&connection, &self.stage);
            async move {
                let Ok(mut response) = answer.await;
                if *stage.borrow() > Stage::Serving {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                if response.status() == StatusCode::OK {
                    connection.mark_proven();
                }
                connection.mark(Activity::Response);
                Ok::<_, Infallible>(response)
            }
        });
        let mut stage = self.stage.clone();
        let end = async {
            finishing(&mut stage).await;
            // The runtime reads a request that has already arrived before this connection counts as idle. The API server does
            // not repeat a request, so without this its write would fail.
            tokio::task::yield_now().await;
        };
        let mut http =
            pin!(http1::Builder::new().max_buf_size(HTTP_BUFFER).serve_connection(TokioIo::new(stream), service));
        let served = tokio::select! {
            biased;
            served = &mut http => served,
            () = end => {
                http.as_mut().graceful_shutdown();
                http.await
            }
            () = connection.evicted() => {
                http.as_mut().graceful_shutdown();
                tracing::debug!("connection evicted");
                // An idle connection closes TLS. The server does not wait for a slow client.
                http.now_or_never().unwrap_or(Ok(()))
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection failed");
        }
    }
}

/// Returns true if the client went away before its connection was accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Resolves when the server stops accepting, or is gone.
async fn finishing(stage: &mut watch::Receiver<Stage>) {
    stage.wait_for(|stage| *stage >= Stage::Finishing).await.map(drop).unwrap_or_default();
}

/// Connections that the system queues until they are accepted. It drops the first packet of any more, which the client
/// resends after a second. Many connections arrive at once when an API server starts.
const QUEUE: u32 = 1024;

/// Listens on `address`. On a machine without IPv6, the unspecified IPv6 address means all of IPv4.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && !is_about_port(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        listener => listener,
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Allows a restart while the system remembers connections of the previous process.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

fn is_about_port(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::LabelledCounters;
    use crate::webhook::connections::ConnectionLimits;
    use prometheus_client::metrics::counter::Counter;
    use std::io::{Read, Write};
    use tokio::sync::watch::Sender;

    /// Runs on one thread, so that the server reads nothing between the write and the change of stage.
    #[tokio::test]
    async fn a_request_that_arrived_before_the_stop_is_answered() {
        const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let (mut client, stage, served) = connected().await;
        client.write_all(REQUEST).unwrap();
        assert!(answer(&client).await.starts_with("HTTP/1.1 200 "), "the connection is idle now");

        client.write_all(REQUEST).unwrap();
        stage.send_replace(Stage::Finishing);

        let answered = answer(&client).await;
        assert!(answered.contains("connection: close"), "{answered:?}");
        served.await.unwrap();
    }

    /// Returns a connection to its own server.
    async fn connected() -> (std::net::TcpStream, Sender<Stage>, tokio::task::JoinHandle<()>) {
        let (stage, receiver) = watch::channel(Stage::Serving);
        let limits = ConnectionLimits { connections: 1, per_source: 1, grace: Duration::ZERO };
        let acceptor = Acceptor {
            certificate: None,
            router: Router::new().fallback(|| async {}),
            lanes: Lanes::default(),
            connections: Connections::new(limits, "webhook", &LabelledCounters::<2>::default(), Counter::default()),
            timeouts: Timeouts::default(),
            stage: receiver,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, stage, tokio::spawn(acceptor.run(listener)))
    }

    /// Returns the answer, or nothing if the connection closes.
    async fn answer(client: &std::net::TcpStream) -> String {
        let mut client = client.try_clone().unwrap();
        let mut buffer = [0; 1024];
        let read = tokio::task::spawn_blocking(move || client.read(&mut buffer).map(|read| buffer[..read].to_vec()));
        String::from_utf8(read.await.unwrap().unwrap_or_default()).unwrap()
    }
}
