//! The accept loop: connections of one listener, bounded in number, each on its own task, until they are told to end.

use super::certificate::Certificate;
use super::pace::Paced;
use super::connections::{Place, Places};
use super::{Stage, Timeouts};
use axum::Router;
use axum::body::Body;
use futures::FutureExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// A pause after an `accept` that failed: it mostly means that there are no file descriptors left, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes that HTTP buffers of a request, and of an answer beside its body: the least that hyper allows. The budget counts
/// the bodies. A longer header is refused with 431; the API server's has less than a thousand bytes.
const HTTP_BUFFER: usize = 8 * 1024;

/// Bytes that TLS buffers of an answer which the client does not take: one record.
const TLS_BUFFER: usize = 16 * 1024;

/// One listener, and what its connections are served with.
pub(super) struct Acceptor {
    /// `None`: plain HTTP.
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) router: Router,
    pub(super) places: Arc<Places>,
    pub(super) timeouts: Timeouts,
    pub(super) stage: watch::Receiver<Stage>,
}

impl Acceptor {
    /// Serves `listener` until [`Stage::Finishing`], then waits for what is in flight.
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
                Err(error) if is_about_one_connection(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    this.places.make_room();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Only now is it known that somebody needs a place.
            let place = tokio::select! {
                place = this.places.take(peer.ip().to_canonical()) => place,
                () = &mut finishing => break,
            };
            if let Some(place) = place {
                tasks.spawn(Arc::clone(&this).connection(stream, Arc::new(place)));
            } else {
                tracing::debug!(%peer, "refused: its address has as many connections as one may have");
            }
        }
        drop(listener);
        let end = tokio::time::Instant::now() + this.timeouts.finish;
        while let Ok(Some(_)) = tokio::time::timeout_at(end, tasks.join_next()).await {}
        if !tasks.is_empty() {
            tracing::warn!(connections = tasks.len(), "cut off: they took too long to finish");
        }
        tasks.shutdown().await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, place: Arc<Place>) {
        // Answers are small and written whole.
        stream.set_nodelay(true).ok();
        match &self.certificate {
            None => self.http(stream, place).await,
            Some(certificate) => {
                // Without one there is nothing to say, and a connection that ends at once is asked for again soonest.
                let Some(config) = certificate.config() else { return };
                let handshake =
                    TlsAcceptor::from(config).accept_with(stream, |tls| tls.set_buffer_limit(Some(TLS_BUFFER)));
                let handshake = tokio::select! {
                    handshake = tokio::time::timeout(self.timeouts.handshake, handshake) => handshake,
                    () = place.left() => return,
                };
                match handshake {
                    Ok(Ok(stream)) => self.http(stream, place).await,
                    // A probe of the port, a client that does not trust us: its business, and not worth a line each.
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS connection"),
                    Err(_elapsed) => tracing::debug!("no TLS connection in time"),
                }
            }
        }
    }

    /// HTTP/1.1 on `stream`.
    async fn http<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, place: Arc<Place>) {
        let stream = Paced::new(stream, Arc::clone(&place), self.timeouts);
        let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
            if request.body().is_end_stream() {
                place.is_busy_now();
            } else {
                place.body_begins();
            }
            request.extensions_mut().insert(Arc::clone(&place));
            let answer = self.router.clone().oneshot(request.map(Body::new));
            let place = Arc::clone(&place);
            let stage = self.stage.clone();
            async move {
                let mut response: Response<Body> = answer.await.unwrap_or_else(|never: Infallible| match never {});
                if *stage.borrow() > Stage::Serving {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                if response.status() == StatusCode::OK {
                    place.is_proven_now();
                }
                place.answer_begins();
                Ok::<_, Infallible>(response)
            }
        });
        let mut stage = self.stage.clone();
        let end = async {
            finishing(&mut stage).await;
            // Once round the runtime, so that a request that has arrived is read before its connection counts as idle: the
            // API server sends none a second time, and the write that it was for would fail.
            tokio::task::yield_now().await;
        };
        let mut connection =
            pin!(http1::Builder::new().max_buf_size(HTTP_BUFFER).serve_connection(TokioIo::new(stream), service));
        let served = tokio::select! {
            biased;
            served = &mut connection => served,
            () = end => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = place.left() => {
                connection.as_mut().graceful_shutdown();
                tracing::debug!("closed, to make room for another connection");
                // An idle connection says goodbye. One whose client is slow is not waited for.
                connection.now_or_never().unwrap_or(Ok(()))
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Not about the listener: the client has gone before it was accepted.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Resolves when the server is to finish, or is gone.
async fn finishing(stage: &mut watch::Receiver<Stage>) {
    stage.wait_for(|stage| *stage >= Stage::Finishing).await.map(drop).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::ConnectionsEvicted;
    use crate::webhook::connections::PlaceLimits;
    use prometheus_client::metrics::counter::Counter;
    use std::io::{Read, Write};
    use tokio::sync::watch::Sender;

    /// On one thread, so that nothing is read between the two lines that the test is about.
    #[tokio::test]
    async fn a_request_that_has_arrived_when_the_end_comes_is_answered() {
        const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let (mut client, stage, served) = connected().await;
        client.write_all(REQUEST).unwrap();
        assert!(answer(&client).await.starts_with("HTTP/1.1 200 "), "the connection is idle after this");

        client.write_all(REQUEST).unwrap();
        stage.send_replace(Stage::Finishing);

        let answered = answer(&client).await;
        assert!(answered.contains("connection: close"), "{answered:?}");
        served.await.unwrap();
    }

    /// A connection to a server of its own.
    async fn connected() -> (std::net::TcpStream, Sender<Stage>, tokio::task::JoinHandle<()>) {
        let (stage, receiver) = watch::channel(Stage::Serving);
        let limits = PlaceLimits { connections: 1, per_source: 1, grace: Duration::ZERO, answers_prove: true };
        let acceptor = Acceptor {
            certificate: None,
            router: Router::new().fallback(|| async { "here" }),
            places: Places::new(limits, "webhook", &ConnectionsEvicted::default(), Counter::default()),
            timeouts: Timeouts::default(),
            stage: receiver,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, stage, tokio::spawn(acceptor.run(listener)))
    }

    /// What is answered, or nothing where the connection ends.
    async fn answer(client: &std::net::TcpStream) -> String {
        let mut client = client.try_clone().unwrap();
        let mut buffer = [0; 1024];
        let read = tokio::task::spawn_blocking(move || client.read(&mut buffer).map(|read| buffer[..read].to_vec()));
        String::from_utf8(read.await.unwrap().unwrap_or_default()).unwrap()
    }
}
