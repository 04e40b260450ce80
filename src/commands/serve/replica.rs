//! A replica: the cluster and the webhook, connected by channels. It has no sockets and receives no signals.
//!
//! Catalogs pass from the cluster to the server, and the server asks the cluster about declarations through a function.
//! [`Supply`] connects the source of the serving certificate to the server, and its CA to the registration.

use super::ServeArgs;
use crate::authority::ServingCertificate;
use crate::controllers::{
    self, CertificateSignals, Coverage, PolicyEnforcement, PolicySignals, RegisteredBundle, RegisteredKinds,
    ServiceReference, Timing, Trust, ca_bundle, share_certificate,
};
use crate::follow::{Cluster, Link};
use crate::supervision::ServeTask;
use crate::telemetry::{Metrics, Spans};
use crate::webhook::{
    Announcer, CatalogEvidence, CertificateError, CertificateSource, Clock, Config, Inspector, ServerState,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube_unions_api::ServerClock;
use kube_unions_core::catalog::Catalog;
use prometheus_client::metrics::gauge::Gauge;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The source of a replica's unions.
pub enum CatalogSource {
    /// A cluster, and the clock of its API server.
    Cluster(Client, ServerClock),
    Files(Arc<Catalog>),
}

/// A task that runs until the end, and its future.
pub type Task = (ServeTask, BoxFuture<'static, ()>);

/// Everything of a replica but its sockets.
pub struct Replica {
    pub state: ServerState,
    /// The catalogs to put in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// Tasks beside those of the server.
    pub tasks: Vec<Task>,
    /// Tasks that write to the cluster. They stop first, so that a stopping replica writes nothing.
    pub writers: Vec<Task>,
}

impl Replica {
    /// Connects the cluster with the server. Nothing runs yet.
    pub fn new(
        source: CatalogSource,
        arguments: &ServeArgs,
        policies: Option<PolicyEnforcement>,
        metrics: Metrics,
        spans: Option<Arc<dyn Spans>>,
    ) -> Result<Self, CertificateError> {
        let link = Link::new(metrics.watch_connected.clone(), metrics.watch_proven.clone());
        let (publish, catalogs) = watch::channel(None);
        let (client, clock) = match source {
            CatalogSource::Cluster(client, clock) => (Some(client), clock),
            CatalogSource::Files(catalog) => {
                publish.send_replace(Some(catalog));
                (None, ServerClock::default())
            }
        };
        let registration_metrics = metrics.registration.clone();
        let policy_metrics = metrics.policies.clone();
        let own_groups_known = metrics.own_groups_known.clone();
        let unions = arguments.sources.builtin_unions.into();
        let cluster = client.clone().map(|client| Cluster::new(client, unions, own_groups_known));
        // `trust` tells registration which CAs to trust; `held` tells which CAs the configurations have.
        let (trust, trusted) = watch::channel(None);
        let (report, held) = watch::channel(RegisteredBundle::default());
        // Registration sends the token of the inspection path to the server.
        let inspection = watch::Sender::new(None);
        // Policies tell registration which kinds they enforce, and registration tells them which kinds the webhook reviews.
        let coverage = policies.as_ref().map_or_else(Coverage::none, |policies| policies.duty.first_coverage());
        let (cover, coverage) = watch::channel(coverage);
        let (confirm, registered) = watch::channel(RegisteredKinds::default());
        let supply = Supply::new(arguments, trust, held);
        let (time, judged) = (clock.clone(), clock.clone());
        let evidence = link.clone();
        let config = Config {
            clock: Clock { now: Arc::new(move || time.now()), fault: Arc::new(move || judged.fault()) },
            inspections: cluster.as_ref().map(|cluster| (inspector(cluster), inspection.subscribe())),
            announcer: supply.announcer(),
            evidence: cluster.is_some().then(|| -> CatalogEvidence { Arc::new(move || evidence.evidence()) }),
            spans,
            ..arguments.config(supply.source.clone())
        };
        let authority_expiry = metrics.certificate_authority_expiry.clone();
        let state = ServerState::new(config, metrics)?;
        let shared = supply.keep(client.clone(), clock.clone(), authority_expiry);
        let mut tasks: Vec<Task> = vec![(ServeTask::SharedCertificate, shared.boxed())];
        let mut writers: Vec<Task> = Vec::new();
        if let (Some(client), Some(cluster), Some(registration)) = (&client, &cluster, arguments.registration()) {
            let signals = controllers::Signals {
                catalogs: state.in_force(),
                declarable: cluster.declarable(),
                trust: trusted,
                coverage,
                registered: confirm,
                held: report,
                inspection,
                ready: Box::new(state.readiness()),
                clock,
                metrics: registration_metrics,
            };
            let registration = controllers::register(client.clone(), registration, signals);
            writers.push((ServeTask::Registration, registration.boxed()));
        }
        if let (Some(client), Some(policies)) = (&client, policies) {
            let signals =
                PolicySignals { catalogs: state.in_force(), registered, coverage: cover, metrics: policy_metrics };
            writers.push((ServeTask::Policies, controllers::enforce(client.clone(), policies, signals).boxed()));
        }
        if let Some(cluster) = cluster {
            tasks.push((ServeTask::Watch, async move { cluster.follow(link, publish).await }.boxed()));
        }
        Ok(Self { state, catalogs, tasks, writers })
    }
}

/// Returns an inspector that reads the target of a declaration from the cluster.
fn inspector(cluster: &Cluster) -> Inspector {
    let cluster = cluster.clone();
    Arc::new(move |object| {
        let cluster = cluster.clone();
        Box::pin(async move { Ok(cluster.inspect(&object).await?) })
    })
}

/// Time in which API servers learn of a changed webhook configuration.
const PROPAGATION: Duration = Duration::from_secs(2);

/// Reason for the missing certificate before the first read of the Secret.
const NOT_READ: &str = "the Secret has not been read yet";

/// The source of a server's certificate, and the channels of its CA.
struct Supply {
    source: CertificateSource,
    /// The shared Secret, with --tls-secret.
    shared: Option<SharedSource>,
    trust: watch::Sender<Option<Trust>>,
    held: watch::Receiver<RegisteredBundle>,
    register: bool,
}

struct SharedSource {
    service: ServiceReference,
    secret: String,
    offers: watch::Sender<ServingCertificate>,
}

impl Supply {
    fn new(
        arguments: &ServeArgs,
        trust: watch::Sender<Option<Trust>>,
        held: watch::Receiver<RegisteredBundle>,
    ) -> Self {
        let shared = arguments.service.clone().zip(arguments.tls_secret.clone());
        let (source, shared) = match (shared, &arguments.tls_cert_dir) {
            (Some((service, secret)), _) => {
                let (offers, offered) = watch::channel(Err(NOT_READ.into()));
                (CertificateSource::Offered(offered), Some(SharedSource { service, secret, offers }))
            }
            (None, Some(directory)) => (CertificateSource::Directory(directory.clone()), None),
            (None, None) => (CertificateSource::SelfSigned { ca_file: arguments.ca_file() }, None),
        };
        if let Some(certificate) = &arguments.inject_ca_from {
            trust.send_replace(Some(Trust::InjectedFrom(certificate.as_str().into())));
        }
        // With --inject-ca-from cert-manager writes `caBundle`.
        let register = arguments.service.is_some() && arguments.register && arguments.inject_ca_from.is_none();
        Self { source, shared, trust, held, register }
    }

    /// Returns the announcer of a directory's `ca.crt`, if this replica registers it.
    fn announcer(&self) -> Option<Announcer> {
        if !self.register || !matches!(self.source, CertificateSource::Directory(_)) {
            return None;
        }
        let (trust, held) = (self.trust.clone(), self.held.clone());
        Some(Arc::new(move |authorities| {
            trust.send_replace(Some(Trust::Local(authorities.as_str().into())));
            let announced = ca_bundle(&authorities);
            let mut held = held.clone();
            async move {
                if held.wait_for(|held| held.holds(&announced)).await.is_err() {
                    // The registration has ended and reports nothing more.
                    return pending().await;
                }
                tokio::time::sleep(PROPAGATION).await;
            }
            .boxed()
        }))
    }

    /// Keeps the certificate and the channels for ever.
    async fn keep(self, client: Option<Client>, clock: ServerClock, authority_expiry: Gauge) {
        let Self { shared, trust, held, .. } = self;
        if let (Some(SharedSource { service, secret, offers }), Some(client)) = (shared, client) {
            let timing = Timing { clock: Arc::new(move || clock.now()), ..Timing::default() };
            let signals = CertificateSignals { offers, trust, held, expiry: authority_expiry };
            share_certificate(client, &service, &secret, timing, signals).await;
        } else {
            // The registration waits for changes of `trust`, which must stay open.
            pending::<()>().await;
            drop(trust);
        }
    }
}
