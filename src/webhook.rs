//! The webhook's listeners: TLS, HTTP/1.1, limits, health, metrics, and an orderly end.
//!
//! It is given catalogs through a channel and knows nothing of where they come from. Two ports: reviews at `/mutate` and
//! `/validate` over TLS; `/livez`, `/readyz` and `/metrics` in the clear.
//!
//! # Pressure
//!
//! Every connection is accepted. When places run out, the connection that is worth least is closed (`places`). The bytes of
//! a request count as they arrive, and with them its answer until it is sent (`budget`). When bytes run out, the slowest
//! transfer is closed; where all keep up, the request is told to come again. Each wait for a client has an end (`pace`).
//!
//! # End
//!
//! When it is told to stop it is unready at once and serves on for [`Config::shutdown_delay`], since it takes a cluster
//! some seconds to send its requests elsewhere, with `Connection: close` on every answer; then it accepts nothing more,
//! finishes what is in flight, and returns.

mod accept;
mod budget;
mod certificate;
mod review_metrics;
mod declarations;
mod exposition;
mod open_files;
mod pace;
mod connections;
mod readiness;
mod reviews;
mod routes;
mod refusal;

pub use certificate::{Announcer, CertificateError, CertificateSource, ClientPolicy};
pub use declarations::{Inspector, InspectorError};
pub use reviews::Reviewer;

use crate::telemetry::{Metrics, Spans};
use accept::Acceptor;
use budget::{Budget, Held};
use certificate::Certificate;
use declarations::Inspections;
use kube_unions_core::admission::{InspectionToken, Ratcheting};
use kube_unions_core::catalog::Catalog;
use connections::{PlaceLimits, Places};
use readiness::Readiness;
use reviews::Reviews;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where reviews are answered. Port 0: any that is free.
    pub webhook: SocketAddr,
    /// Where health and metrics are answered, likewise.
    pub ops: SocketAddr,
    /// The serving certificate.
    pub certificate: CertificateSource,
    /// How often its files are looked at.
    pub certificate_poll: Duration,
    /// Who may connect to the webhook port.
    pub clients: Option<ClientPolicy>,
    /// Whether old faults are let through.
    pub ratcheting: Ratcheting,
    /// How long to serve on after being told to stop.
    pub shutdown_delay: Duration,
    /// How much at a time.
    pub limits: Limits,
    /// How slow a client may be.
    pub timeouts: Timeouts,
}

impl Config {
    /// The defaults, with this certificate.
    pub fn new(certificate: CertificateSource) -> Self {
        Self {
            webhook: (Ipv6Addr::UNSPECIFIED, 10250).into(),
            ops: (Ipv6Addr::UNSPECIFIED, 8080).into(),
            certificate,
            certificate_poll: Duration::from_secs(10),
            clients: None,
            ratcheting: Ratcheting::default(),
            shutdown_delay: Duration::from_secs(10),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// How much is taken on at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one body. A review carries an object and its predecessor, of 3 MiB at the most each.
    pub body: usize,
    /// Bytes of all bodies, as far as they have arrived, and of their answers until those are sent. At least
    /// [`body`](Self::body).
    pub in_flight: usize,
    /// Connections to the webhook port.
    pub connections: usize,
    /// Connections to the webhook port from one address.
    pub connections_per_source: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 7 * 1024 * 1024,
            in_flight: 64 * 1024 * 1024,
            connections: 1024,
            connections_per_source: usize::MAX,
        }
    }
}

/// How long is waited for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For the first byte after it. As long as for the next request: the API server dials while another connection may
    /// become free first, and then keeps the new one for later, idle from the beginning.
    pub first_byte: Duration,
    /// For the rest of a request's header after its first byte.
    pub header: Duration,
    /// For a whole body.
    pub body: Duration,
    /// For the next request on a connection. Longer than the 90 seconds after which the API server itself closes.
    pub idle: Duration,
    /// For the client to take an answer that does not fit into what the system buffers.
    pub write: Duration,
    /// For what is in flight when the end comes.
    pub finish: Duration,
}

/// Longer than the 90 seconds after which the API server closes a connection that it does not use: whichever closes first
/// cuts off what the other has just sent.
const IDLE: Duration = Duration::from_secs(150);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            first_byte: IDLE,
            header: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: IDLE,
            write: Duration::from_secs(10),
            finish: Duration::from_secs(10),
        }
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on `{address}`: {source}; give another address by --bind or --ops-bind")]
    Bind {
        /// As configured.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// There is no certificate to serve with.
    #[error("no serving certificate")]
    Certificate(#[from] CertificateError),
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    /// Unready, and no connection is kept.
    Draining,
    /// Nothing new is accepted.
    Finishing,
}

/// A server that has its addresses and its certificate. Connections queue until it runs.
pub struct Server {
    webhook: TcpListener,
    ops: TcpListener,
    addresses: Addresses,
    certificate: Arc<Certificate>,
    announcer: Option<Announcer>,
    reviews: Arc<Reviews>,
    inspections: Option<Inspections>,
    budget: Arc<Budget>,
    readiness: Readiness,
    in_force: watch::Sender<Option<Arc<Catalog>>>,
    metrics: Arc<Metrics>,
    config: Config,
}

/// Where a server really listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Reviews.
    pub webhook: SocketAddr,
    /// Health and metrics.
    pub ops: SocketAddr,
}

impl Server {
    /// Loads the certificate and listens.
    pub async fn bind(config: Config, metrics: Metrics) -> Result<Self, ServerError> {
        Self::with_reviewer(config, metrics, Reviews::reviewer()).await
    }

    /// The same with another way to answer reviews.
    #[allow(clippy::unused_async, reason = "to listen takes the runtime that awaits it")]
    pub async fn with_reviewer(config: Config, mut metrics: Metrics, reviewer: Reviewer) -> Result<Self, ServerError> {
        let certificate = Certificate::new(&config.certificate, config.clients.as_ref(), &metrics)?;
        let reviews = Reviews::new(reviewer, config.ratcheting, &mut metrics);
        let budget = Budget::new(config.limits.in_flight, config.limits.body);
        metrics.register(Box::new(Held(Arc::clone(&budget))));
        let webhook = listen(config.webhook)?;
        let ops = listen(config.ops)?;
        let addresses = Addresses {
            webhook: webhook.local_addr().map_err(|source| ServerError::Bind { address: config.webhook, source })?,
            ops: ops.local_addr().map_err(|source| ServerError::Bind { address: config.ops, source })?,
        };
        let (certificate, reviews) = (Arc::new(certificate), Arc::new(reviews));
        let readiness = Readiness::new(Arc::clone(&certificate), Arc::clone(&reviews));
        Ok(Self {
            webhook,
            ops,
            addresses,
            certificate,
            announcer: None,
            reviews,
            inspections: None,
            budget,
            readiness,
            in_force: watch::Sender::new(None),
            metrics: Arc::new(metrics),
            config,
        })
    }

    /// Reviews objects that declare unions at the path of the token; `inspector` judges the `UnionDeclaration`s among
    /// them. Without a token there is no such path.
    #[must_use]
    pub fn inspecting_with(self, inspector: Inspector, token: watch::Receiver<Option<InspectionToken>>) -> Self {
        let inspections = Inspections::new(inspector, token, &self.budget, self.metrics.inspections().clone());
        Self { inspections: Some(inspections), ..self }
    }

    /// Has a span of every review told to `spans`.
    #[must_use]
    pub fn tracing_to(self, spans: Arc<dyn Spans>) -> Self {
        self.reviews.trace_to(spans);
        self
    }

    /// The catalog by which reviews are answered, each as soon as it is.
    pub fn in_force(&self) -> watch::Receiver<Option<Arc<Catalog>>> {
        self.in_force.subscribe()
    }

    /// Has `announcer` tell the API server of each `ca.crt` in the certificate's folder, before a pair is served that came
    /// with it. Without one pairs are served as they come.
    #[must_use]
    pub fn announcing_with(self, announcer: Announcer) -> Self {
        Self { announcer: Some(announcer), ..self }
    }

    /// Whether requests should be sent here now, as `/readyz` says.
    pub fn readiness(&self) -> impl Fn() -> bool + Clone + Send + Sync + use<> {
        let readiness = self.readiness.clone();
        move || readiness.report().is_ready()
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves until `stop` resolves, and then comes to an orderly end. Each catalog that arrives is put in force; until
    /// the first, reviews are answered with 503.
    pub async fn run(self, mut catalogs: watch::Receiver<Option<Arc<Catalog>>>, stop: impl Future<Output = ()>) {
        let Self {
            webhook,
            ops,
            addresses,
            certificate,
            announcer,
            reviews,
            inspections,
            budget,
            readiness,
            in_force,
            metrics,
            config,
        } = self;
        // One that is there already is in force before anybody is told where to ask.
        put_in_force(&mut catalogs, &reviews, &in_force);
        let (stage, _) = watch::channel(Stage::Serving);
        let (evicted, refused) = (metrics.connections_evicted(), metrics.connections_refused());
        let places = PlaceLimits {
            connections: open_files::room_for(config.limits.connections),
            per_source: config.limits.connections_per_source,
            grace: GRACE,
            answers_prove: true,
        };
        // Whoever asks gets the same 200 here. A cap on one address would refuse probes that come from it.
        let ops_places = PlaceLimits {
            connections: OPS_CONNECTIONS,
            per_source: usize::MAX,
            grace: OPS_GRACE,
            answers_prove: false,
        };
        let webhook_acceptor = Acceptor {
            certificate: Some(Arc::clone(&certificate)),
            places: Places::new(places, "webhook", evicted, refused.clone()),
            router: routes::webhook(Arc::new(routes::Webhook {
                reviews: Arc::clone(&reviews),
                inspections,
                limits: config.limits,
                timeouts: config.timeouts,
                budget,
                turns: Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))),
                again: Semaphore::new(1),
                metrics: Arc::clone(&metrics),
            })),
            timeouts: config.timeouts,
            stage: stage.subscribe(),
        };
        let ops_acceptor = Acceptor {
            certificate: None,
            places: Places::new(ops_places, "ops", evicted, refused.clone()),
            router: routes::ops(readiness.clone(), metrics),
            // In the clear there is no handshake that a silent client would fail at, and no API server that keeps one.
            timeouts: Timeouts { first_byte: config.timeouts.handshake, ..config.timeouts },
            stage: stage.subscribe(),
        };
        let background = [
            tokio::spawn(publish(catalogs, reviews, in_force)),
            tokio::spawn(certificate.keep_fresh(config.certificate_poll, announcer)),
        ];
        let listeners = [tokio::spawn(webhook_acceptor.run(webhook)), tokio::spawn(ops_acceptor.run(ops))];
        readiness.listen();
        tracing::info!(webhook = addresses.webhook.to_string(), ops = addresses.ops.to_string(), "listening");

        stop.await;
        readiness.stop();
        stage.send_replace(Stage::Draining);
        tracing::info!(delay = ?config.shutdown_delay, "stopping");
        tokio::time::sleep(config.shutdown_delay).await;
        stage.send_replace(Stage::Finishing);
        for listener in listeners {
            if let Err(error) = listener.await {
                tracing::error!(%error, "a listener ended badly");
            }
        }
        for task in background {
            task.abort();
        }
        tracing::info!("stopped");
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, certificate, config, .. } = self;
        let mut out = out.debug_struct("Server");
        out.field("addresses", addresses).field("certificate", certificate).field("config", config);
        out.finish_non_exhaustive()
    }
}

/// Health and metrics have few readers.
const OPS_CONNECTIONS: usize = 64;

/// How long a new connection to the webhook port is left alone: enough for a handshake and a review by a client that hurries.
const GRACE: Duration = Duration::from_millis(250);

/// The same on the ops port, where there is no handshake and a probe sends its request as soon as it is connected. Short,
/// because a probe waits behind as many silent connections as the system's queue holds.
const OPS_GRACE: Duration = Duration::from_millis(10);

/// Puts each catalog in force that arrives, until no more can.
async fn publish(
    mut catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    reviews: Arc<Reviews>,
    in_force: watch::Sender<Option<Arc<Catalog>>>,
) {
    while catalogs.changed().await.is_ok() {
        put_in_force(&mut catalogs, &reviews, &in_force);
    }
}

fn put_in_force(
    catalogs: &mut watch::Receiver<Option<Arc<Catalog>>>,
    reviews: &Reviews,
    in_force: &watch::Sender<Option<Arc<Catalog>>>,
) {
    let catalog = catalogs.borrow_and_update().clone();
    if let Some(catalog) = catalog {
        reviews.publish(Arc::clone(&catalog));
        // Nobody may want to know.
        in_force.send_replace(Some(catalog));
    }
}

/// Connections that the system keeps until they are accepted. Of what is beyond them it drops the first packet, which the
/// client sends again after a second: many come at once when an API server has just started.
const QUEUE: u32 = 1024;

/// All of IPv4 takes the place of all of IPv6 on a machine without the latter.
fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let open = |address: SocketAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // So that it can start again while connections of the one before are still remembered.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(QUEUE)
    };
    let listener = match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && !is_about_the_port(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        listener => listener,
    };
    listener.map_err(|source| ServerError::Bind { address, source })
}

fn is_about_the_port(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}
