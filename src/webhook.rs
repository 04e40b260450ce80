//! The webhook's server: TLS, HTTP/1.1, limits, health, metrics, and a graceful shutdown.
//!
//! It answers reviews at `/mutate` and `/validate` over TLS on one port, and `/livez`, `/readyz` and `/metrics` in plain HTTP
//! on another. It receives catalogs through a channel and must not know where they come from: nothing here names the cluster.
//! Start reading at `routes`, which leads from a request to its answer.
//!
//! # Pressure
//!
//! The server accepts every connection. When the connection table is full, it evicts the connection that is worth least
//! (`connections`). The bytes of a request count as they arrive, and so does its answer until it is sent (`budget`). When
//! bytes run out, the slowest transfer is evicted; if no transfer is slow, the request is refused with 429 and `Retry-After`.
//! Each wait for a client has a deadline (`deadline_stream`).
//!
//! Large reviews take turns in order of arrival, and one that would be answered too late is refused at once (`turns`). A review
//! ends early when its caller no longer waits (`caller`).
//!
//! # Shutdown
//!
//! When asked to stop, the server becomes unready at once and keeps serving for [`Config::shutdown_delay`] with
//! `Connection: close`, because a cluster takes some seconds to send its requests elsewhere. Then it accepts no more
//! connections, finishes the requests in flight, and returns.

mod accept;
mod body;
mod budget;
mod caller;
mod certificate;
mod config;
mod connections;
mod deadline_stream;
mod exposition;
mod inspections;
mod lanes;
mod open_files;
mod published;
mod readiness;
mod refusal;
mod review_metrics;
mod reviews;
mod routes;
mod turns;

pub use certificate::{CertificateError, CertificateFault, CertificateSource, ClientPolicy};
pub use config::{Announcer, CatalogEvidence, Clock, Config, Inspector, InspectorError, Limits, Reviewer, Timeouts};

use crate::supervision::{ServeTask, Supervised, TaskEnded};
use crate::telemetry::Metrics;
use accept::{Acceptor, Stage, listen};
use body::BodyReader;
use budget::{Budget, BudgetGauge};
use certificate::CertificateReloader;
use connections::{ConnectionLimits, Connections};
use exposition::Exposition;
use inspections::Inspections;
use kube_unions_core::admission::{Meter, Phase, ReviewError};
use kube_unions_core::catalog::Catalog;
use lanes::Lanes;
use readiness::Readiness;
use reviews::Reviews;
use routes::{Ops, Webhook};
use rustls::server::ServerConfig;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use turns::Turns;

/// A server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The system does not let the server listen on an address.
    #[error("cannot listen on `{address}`: {source}; give another address with --bind or --ops-bind")]
    Bind { address: SocketAddr, source: io::Error },
    /// The system does not give the threads that serve connections.
    #[error("cannot start threads: {0}")]
    Threads(#[source] io::Error),
    /// The certificate cannot be loaded.
    #[error("no serving certificate")]
    Certificate(#[from] CertificateError),
}

/// The state of a server: its certificate, the catalog in force, and its readiness. It has no sockets.
pub struct ServerState {
    certificate: Arc<CertificateReloader>,
    reviews: Arc<Reviews>,
    budget: Arc<Budget>,
    readiness: Readiness,
    in_force: watch::Sender<Option<Arc<Catalog>>>,
    metrics: Arc<Metrics>,
    config: Config,
}

/// A server that listens and has its certificate. Connections queue until it runs.
pub struct Server {
    state: ServerState,
    webhook: TcpListener,
    ops: TcpListener,
    lanes: Lanes,
    addresses: Addresses,
}

/// The addresses on which a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Reviews.
    pub webhook: SocketAddr,
    /// Health and metrics.
    pub ops: SocketAddr,
}

impl ServerState {
    /// Loads the certificate.
    pub fn new(config: Config, mut metrics: Metrics) -> Result<Self, CertificateError> {
        let certificate = Arc::new(CertificateReloader::new(&config, &metrics)?);
        let reviews = Arc::new(Reviews::new(&config, &mut metrics));
        let budget = Budget::new(config.limits.in_flight, config.limits.body);
        metrics.register(Box::new(BudgetGauge(Arc::clone(&budget))));
        let readiness = Readiness::new(Arc::clone(&certificate), Arc::clone(&reviews), &config);
        let (in_force, metrics) = (watch::Sender::new(None), Arc::new(metrics));
        Ok(Self { certificate, reviews, budget, readiness, in_force, metrics, config })
    }

    /// Returns the catalog in force, through a channel that follows each change.
    pub fn in_force(&self) -> watch::Receiver<Option<Arc<Catalog>>> {
        self.in_force.subscribe()
    }

    /// Returns a function that answers like `/readyz`.
    pub fn readiness(&self) -> impl Fn() -> bool + Clone + Send + Sync + use<> {
        let readiness = self.readiness.clone();
        move || readiness.report().is_ready()
    }

    /// Returns the TLS configuration of the next connection; `None` if there is no certificate yet.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.certificate.config()
    }

    /// Answers a review, given as JSON text, as the routes do; `None` while there is no catalog.
    pub fn answer(&self, phase: Phase, body: &[u8], memory: &dyn Meter) -> Option<Result<Vec<u8>, ReviewError>> {
        self.reviews.answer(phase, body, memory, None)
    }

    /// Records that connections are accepted, and keeps the catalog of the channel in force and the certificate fresh.
    pub fn start(&self, mut catalogs: watch::Receiver<Option<Arc<Catalog>>>) -> Supervised {
        // A catalog that is already here must be in force before the first request.
        put_in_force(&mut catalogs, &self.reviews, &self.in_force);
        let mut background = Supervised::default();
        let (certificate, reviews) = (Arc::clone(&self.certificate), Arc::clone(&self.reviews));
        background.spawn(ServeTask::Catalogs, publish(catalogs, reviews, self.in_force.clone()));
        let announcer = self.config.announcer.clone();
        background.spawn(ServeTask::Certificate, certificate.keep_fresh(self.config.certificate_poll, announcer));
        self.readiness.listen();
        background
    }
}

impl Server {
    /// Listens on both addresses.
    #[allow(clippy::unused_async, reason = "listening needs a runtime, which an async caller has")]
    pub async fn bind(state: ServerState) -> Result<Self, ServerError> {
        let bound = |address| {
            let listener = listen(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
            listener.map_err(|source| ServerError::Bind { address, source })
        };
        let (webhook_address, webhook) = bound(state.config.webhook)?;
        let (ops_address, ops) = bound(state.config.ops)?;
        let lanes = Lanes::start(processors()).map_err(ServerError::Threads)?;
        let addresses = Addresses { webhook: webhook_address, ops: ops_address };
        Ok(Self { state, webhook, ops, lanes, addresses })
    }

    /// Returns the addresses on which the server listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves until `stop` resolves, and then shuts down gracefully. Puts each catalog that arrives in force. Before the first
    /// catalog, reviews are refused with 503. Returns an error as soon as a task of the server ends.
    pub async fn run(
        self,
        catalogs: watch::Receiver<Option<Arc<Catalog>>>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), TaskEnded> {
        let ServerState { config, metrics, readiness, .. } = &self.state;
        // Connections queue until the listeners run, below. A task that ends closes its channels. Those that end for that reason are
        // not the first.
        let _open = (catalogs.clone(), self.state.in_force.clone());
        let mut background = self.state.start(catalogs);
        let (stage, _) = watch::channel(Stage::Serving);
        let (evicted, refused) = (&metrics.connections_evicted, &metrics.connections_refused);
        let limits = ConnectionLimits {
            connections: open_files::room_for(config.limits.connections),
            per_source: config.limits.connections_per_source,
            grace: GRACE,
        };
        // A limit for each address would refuse probes that share one.
        let ops_limits = ConnectionLimits { connections: OPS_CONNECTIONS, per_source: usize::MAX, grace: OPS_GRACE };
        let inspections = config.inspections.clone().map(|(inspector, token)| {
            Inspections::new(inspector, token, &self.state.budget, metrics.inspections.clone())
        });
        let webhook_acceptor = Acceptor {
            certificate: Some(Arc::clone(&self.state.certificate)),
            connections: Connections::new(limits, "webhook", evicted, refused.clone()),
            lanes: self.lanes,
            router: routes::webhook(Arc::new(Webhook {
                reviews: Arc::clone(&self.state.reviews),
                inspections,
                bodies: BodyReader::new(config.limits.body, config.timeouts, Arc::clone(&self.state.budget)),
                turns: Turns::new(processors(), config.limits.in_flight / 3, metrics.queued.clone()),
                retries: Semaphore::new(1),
                metrics: Arc::clone(metrics),
            })),
            timeouts: config.timeouts,
            stage: stage.subscribe(),
        };
        let ops_acceptor = Acceptor {
            certificate: None,
            connections: Connections::new(ops_limits, "ops", evicted, refused.clone()),
            lanes: Lanes::default(),
            router: routes::ops(Ops {
                readiness: readiness.clone(),
                exposition: Arc::new(Exposition::new(Arc::clone(metrics))),
                metrics: Arc::clone(metrics),
            }),
            // Without a handshake, the first byte is the only sign of life. No API server keeps connections to this port.
            timeouts: Timeouts { first_byte: config.timeouts.handshake, ..config.timeouts },
            stage: stage.subscribe(),
        };
        let mut listeners = Supervised::default();
        listeners.spawn(ServeTask::WebhookListener, webhook_acceptor.run(self.webhook));
        listeners.spawn(ServeTask::OpsListener, ops_acceptor.run(self.ops));
        tracing::info!(webhook = self.addresses.webhook.to_string(), ops = self.addresses.ops.to_string(), "listening");

        let drained = async {
            stop.await;
            readiness.stop();
            stage.send_replace(Stage::Draining);
            tracing::info!(delay = ?config.shutdown_delay, "stopping");
            tokio::time::sleep(config.shutdown_delay).await;
        };
        tokio::select! {
            () = drained => {}
            ended = background.ended() => return Err(ended),
            ended = listeners.ended() => return Err(ended),
        }
        stage.send_replace(Stage::Finishing);
        listeners.finish().await?;
        tracing::info!("stopped");
        Ok(())
    }
}

fn processors() -> NonZero<usize> {
    available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Most connections to the ops port. Health and metrics have few readers.
const OPS_CONNECTIONS: usize = 64;

/// Grace of a new connection to the webhook port: enough for the handshake and the first request of a fast client.
const GRACE: Duration = Duration::from_millis(250);

/// Grace of a new connection to the ops port, where a probe sends its request as soon as it is connected. It is short because
/// a probe may wait for the grace of every silent connection in the system's queue.
const OPS_GRACE: Duration = Duration::from_millis(10);

/// Puts each catalog that arrives in force.
async fn publish(
    mut catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    reviews: Arc<Reviews>,
    in_force: watch::Sender<Option<Arc<Catalog>>>,
) {
    while catalogs.changed().await.is_ok() {
        put_in_force(&mut catalogs, &reviews, &in_force);
    }
    // The sender is gone: the last catalog stays in force.
    pending::<()>().await;
}

fn put_in_force(
    catalogs: &mut watch::Receiver<Option<Arc<Catalog>>>,
    reviews: &Reviews,
    in_force: &watch::Sender<Option<Arc<Catalog>>>,
) {
    let catalog = catalogs.borrow_and_update().clone();
    if let Some(catalog) = catalog {
        reviews.publish(Arc::clone(&catalog));
        // There may be no receiver.
        in_force.send_replace(Some(catalog));
    }
}
