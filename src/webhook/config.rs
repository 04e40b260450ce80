//! The configuration of the server: addresses, limits and timeouts, with their defaults, and what other parts of the program do
//! for it.

use super::{CertificateSource, ClientPolicy};
use crate::telemetry::Spans;
use futures::future::BoxFuture;
use kube_unions_core::admission::{self, InspectionToken, Meter, Phase, Ratcheting, Review, ReviewError};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::Fault;
use rustls::pki_types::ServerName;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// The configuration of a [`Server`](super::Server).
#[derive(Clone)]
pub struct Config {
    /// Address for reviews. Port 0 takes any free port.
    pub webhook: SocketAddr,
    /// Address for health and metrics. Port 0 takes any free port.
    pub ops: SocketAddr,
    /// Source of the serving certificate.
    pub certificate: CertificateSource,
    /// Time between two looks at the certificate's files.
    pub certificate_poll: Duration,
    /// Name that the API server asks for. A certificate without it takes the place of no other. `None`: the name is unknown.
    pub server_name: Option<ServerName<'static>>,
    /// Clients that may connect to the webhook port. `None` allows all.
    pub clients: Option<ClientPolicy>,
    /// Rule for unions that were invalid before the request.
    pub ratcheting: Ratcheting,
    /// Time between the request to stop and the end of new connections.
    pub shutdown_delay: Duration,
    /// Limits of memory and connections.
    pub limits: Limits,
    /// Limits of each wait.
    pub timeouts: Timeouts,
    /// Clock by which certificates are judged.
    pub clock: Clock,
    /// Answers reviews.
    pub reviewer: Reviewer,
    /// Judges `UnionDeclaration`s, at the path of the token. While there is no token, there is no such path. `None`: neither is
    /// there one for CRDs.
    pub inspections: Option<(Inspector, watch::Receiver<Option<InspectionToken>>)>,
    /// Makes the API server trust each `ca.crt` in the certificate's directory before the server serves the key pair that came with
    /// it. `None` serves each pair at once.
    pub announcer: Option<Announcer>,
    /// Says how old the newest evidence is that the catalog is current, for the details of `/readyz`.
    pub evidence: Option<CatalogEvidence>,
    /// Takes a span of each review.
    pub spans: Option<Arc<dyn Spans>>,
}

/// A function that says how old the newest evidence is that the catalog is current.
pub type CatalogEvidence = Arc<dyn Fn() -> String + Send + Sync>;

/// A function that answers a review: [`admission::review_within`], or a test's own.
pub type Reviewer =
    Arc<dyn Fn(&Catalog, Phase, Ratcheting, &[u8], &dyn Meter) -> Result<Review, ReviewError> + Send + Sync>;

/// A function that finds the faults of a `UnionDeclaration`, given as JSON text.
pub type Inspector = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<Fault>, InspectorError>> + Send + Sync>;

/// The error of an [`Inspector`].
pub type InspectorError = Box<dyn std::error::Error + Send + Sync>;

/// A function that makes the API server trust additional CAs, PEM. The future resolves when it does.
pub type Announcer = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// A clock that may be wrong.
#[derive(Clone)]
pub struct Clock {
    pub now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Returns what is wrong with this machine's own clock. Then the server is not ready.
    pub fault: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: Arc::new(SystemTime::now), fault: Arc::new(|| None) }
    }
}

impl Config {
    /// Returns the defaults with this certificate.
    pub fn new(certificate: CertificateSource) -> Self {
        Self {
            webhook: (Ipv6Addr::UNSPECIFIED, 10250).into(),
            ops: (Ipv6Addr::UNSPECIFIED, 8080).into(),
            certificate,
            certificate_poll: Duration::from_secs(1),
            server_name: None,
            clients: None,
            ratcheting: Ratcheting::default(),
            shutdown_delay: Duration::from_secs(10),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            clock: Clock::default(),
            reviewer: Arc::new(admission::review_within),
            inspections: None,
            announcer: None,
            evidence: None,
            spans: None,
        }
    }
}

/// Limits of memory and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of one body. A review carries an object and its old version, each of 3 MiB at most.
    pub body: usize,
    /// Most bytes of all requests together: bodies as far as they have arrived, everything that a review builds, and answers
    /// until they are sent. At least [`body`](Self::body).
    pub in_flight: usize,
    /// Most connections to the webhook port.
    pub connections: usize,
    /// Most connections to the webhook port from one address.
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

/// The longest wait in each part of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The TLS handshake.
    pub handshake: Duration,
    /// The first byte after the handshake. As long as `idle`: the API server may dial a connection, send its request on
    /// another one that becomes free first, and keep the new one for later.
    pub first_byte: Duration,
    /// The rest of a request's header after its first byte.
    pub header: Duration,
    /// A whole body.
    pub body: Duration,
    /// The next request on a connection. Longer than the 90 seconds after which the API server itself closes.
    pub idle: Duration,
    /// The client's reading of an answer that does not fit into the socket buffer.
    pub write: Duration,
    /// The memory that other requests hold. Shorter than the API server's wait for an answer.
    pub memory: Duration,
    /// The requests that are in flight when the server stops.
    pub finish: Duration,
}

/// Longer than the 90 seconds after which the API server closes an unused connection. If this side closed first, it could
/// cut off a request that is on its way.
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
            memory: Duration::from_secs(2),
            finish: Duration::from_secs(10),
        }
    }
}
