//! The accept loop: connections of one listener, bounded in number, each on its own task, until they are told to end.

use super::certificate::Certificate;
use super::pace::{Paced, Requests};
use super::places::{Arriving, Guest, Places};
use super::{Stage, Timeouts};
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Request, Response};
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

/// What one connection may have buffered here in either direction, beside the bodies of its request and its answer, which
/// the budget of bytes is for. A longer header is refused with 431; the API server's has less than a thousand bytes.
const BUFFER: usize = 16 * 1024;

/// One listener, and what its connections are served with.
pub(super) struct Acceptor {
    /// `None`: plain HTTP.
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) router: Router,
    /// Answers those for whom there is no seat.
    pub(super) overflow: Router,
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
            let stream = tokio::select! {
                stream = listener.accept() => stream,
                Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
                () = &mut finishing => break,
            };
            let stream = match stream {
                Ok((stream, _)) => stream,
                Err(error) if is_about_one_connection(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    this.places.evict();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Only now is it known that somebody needs a place.
            let (guest, left) = tokio::select! {
                place = this.places.take() => place,
                () = &mut finishing => break,
            };
            let connection = Arc::clone(&this).connection(stream, guest);
            tasks.spawn(async move {
                tokio::select! {
                    () = connection => {}
                    // Not where nobody can tell it to any more.
                    Ok(()) = left => tracing::debug!("closed, to make room for another connection"),
                }
            });
        }
        drop(listener);
        let end = tokio::time::Instant::now() + this.timeouts.finish;
        while let Ok(Some(_)) = tokio::time::timeout_at(end, tasks.join_next()).await {}
        if !tasks.is_empty() {
            tracing::warn!(connections = tasks.len(), "cut off: they took too long to finish");
        }
        tasks.shutdown().await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, guest: Guest) {
        // Answers are small and written whole.
        stream.set_nodelay(true).ok();
        match &self.certificate {
            None => self.http(stream, guest).await,
            Some(certificate) => {
                // Without one there is nothing to say, and a connection that ends at once is asked for again soonest.
                let Some(config) = certificate.config() else { return };
                let handshake = TlsAcceptor::from(config).accept(stream);
                match tokio::time::timeout(self.timeouts.handshake, handshake).await {
                    Ok(Ok(stream)) => self.http(stream, guest).await,
                    // A probe of the port, a client that does not trust us: its business, and not worth a line each.
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS connection"),
                    Err(_elapsed) => tracing::debug!("no TLS connection in time"),
                }
            }
        }
    }

    /// HTTP/1.1 on `stream`.
    async fn http<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, guest: Guest) {
        let guest = Arc::new(guest);
        let requests = Arc::<Requests>::default();
        let stream = Paced::new(stream, Arc::clone(&requests), self.timeouts);
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            requests.begin();
            let welcome = guest.is_welcome();
            let router = if welcome { &self.router } else { &self.overflow };
            let answer = router.clone().oneshot(request.map(|body| Arriving::watch(body, &guest)));
            let guest = Arc::clone(&guest);
            let requests = Arc::clone(&requests);
            let stage = self.stage.clone();
            async move {
                let mut response: Response<Body> = answer.await.unwrap_or_else(|never: Infallible| match never {});
                if !welcome || !guest.may_stay() || *stage.borrow() > Stage::Serving {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                requests.end();
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
            pin!(http1::Builder::new().max_buf_size(BUFFER).serve_connection(TokioIo::new(stream), service));
        let served = tokio::select! {
            biased;
            served = &mut connection => served,
            () = end => {
                connection.as_mut().graceful_shutdown();
                connection.await
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
        let router = Router::new().fallback(|| async { "here" });
        let acceptor = Acceptor {
            certificate: None,
            overflow: router.clone(),
            router,
            places: Places::new(1, std::convert::identity, Counter::default()),
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
