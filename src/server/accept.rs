//! The accept loop: connections of one listener, bounded in number, each on its own task, until they are told to end.

use super::certificate::Certificate;
use super::pace::{Paced, Requests};
use super::{Stage, Timeouts};
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// A pause after an `accept` that failed: it mostly means that there are no file descriptors left, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// One listener, and what its connections are served with.
pub(super) struct Acceptor {
    /// `None`: plain HTTP.
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) router: Router,
    /// Answers what is beyond `connections`.
    pub(super) overflow: Router,
    pub(super) connections: usize,
    pub(super) timeouts: Timeouts,
    pub(super) stage: watch::Receiver<Stage>,
}

impl Acceptor {
    /// Beyond the bound this many more are accepted, to be told so. Past them new ones wait in the system's queue.
    fn refused_at_once(&self) -> usize {
        self.connections / 4 + 1
    }

    /// Serves `listener` until [`Stage::Finishing`], then waits for what is in flight.
    pub(super) async fn run(self, listener: TcpListener) {
        let this = Arc::new(self);
        let served = Arc::new(Semaphore::new(this.connections));
        let accepted = Arc::new(Semaphore::new(this.connections + this.refused_at_once()));
        let mut stage = this.stage.clone();
        let mut finishing = pin!(finishing(&mut stage));
        let mut tasks = JoinSet::new();
        loop {
            let next = async {
                let place = Arc::clone(&accepted).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, stream) = tokio::select! {
                (place, stream) = next => (place, stream),
                Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
                () = &mut finishing => break,
            };
            let stream = match stream {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let served = Arc::clone(&served).try_acquire_owned().ok();
            tasks.spawn(Arc::clone(&this).connection(stream, place.ok(), served));
        }
        drop(listener);
        let end = tokio::time::Instant::now() + this.timeouts.finish;
        while let Ok(Some(_)) = tokio::time::timeout_at(end, tasks.join_next()).await {}
        if !tasks.is_empty() {
            tracing::warn!(connections = tasks.len(), "cut off: they took too long to finish");
        }
        tasks.shutdown().await;
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        _place: Option<OwnedSemaphorePermit>,
        served: Option<OwnedSemaphorePermit>,
    ) {
        // Answers are small and written whole.
        stream.set_nodelay(true).ok();
        let router = if served.is_some() { &self.router } else { &self.overflow };
        let close = served.is_none();
        match &self.certificate {
            None => self.http(stream, router, close).await,
            Some(certificate) => {
                // Without one there is nothing to say, and a connection that ends at once is asked for again soonest.
                let Some(config) = certificate.config() else { return };
                let handshake = TlsAcceptor::from(config).accept(stream);
                match tokio::time::timeout(self.timeouts.handshake, handshake).await {
                    Ok(Ok(stream)) => self.http(stream, router, close).await,
                    // A probe of the port, a client that does not trust us: its business, and not worth a line each.
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS connection"),
                    Err(_elapsed) => tracing::debug!("no TLS connection in time"),
                }
            }
        }
    }

    /// HTTP/1.1 on `stream`; `close`: for one request only.
    async fn http<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, router: &Router, close: bool) {
        let requests = Arc::<Requests>::default();
        let stream = Paced::new(stream, Arc::clone(&requests), self.timeouts);
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            requests.begin();
            let answer = router.clone().oneshot(request.map(Body::new));
            let requests = Arc::clone(&requests);
            let stage = self.stage.clone();
            async move {
                let mut response: Response<Body> = answer.await.unwrap_or_else(|never: Infallible| match never {});
                if close || *stage.borrow() > Stage::Serving {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                requests.end();
                Ok::<_, Infallible>(response)
            }
        });
        let mut stage = self.stage.clone();
        let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        let served = tokio::select! {
            served = &mut connection => served,
            () = finishing(&mut stage) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Resolves when the server is to finish, or is gone.
async fn finishing(stage: &mut watch::Receiver<Stage>) {
    stage.wait_for(|stage| *stage >= Stage::Finishing).await.map(drop).unwrap_or_default();
}
