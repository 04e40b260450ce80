//! `serve`: runs the webhook.
//!
//! This is the one place where the cluster and the webhook meet: `Wiring`. Catalogs pass from the cluster to the server through a channel,
//! and the server asks the cluster about declarations through a function. `Supply` connects the source of
//! the serving certificate to the server, and its CA to the registration. `arguments` has the flags.

mod arguments;
mod entries;

pub use arguments::ServeArgs;
pub(super) use arguments::duration;

use crate::authority::ServingCertificate;
use crate::controllers::{
    self, CertificateSignals, Coverage, PolicyEnforcement, PolicySignals, RegisteredBundle, RegisteredKinds,
    ServiceReference, Timing, Trust, ca_bundle, share_certificate,
};
use crate::follow::{Cluster, Link};
use crate::supervision::{ServeTask, Supervised};
use crate::telemetry::{self, Metrics, Spans};
use crate::webhook::{Announcer, CatalogEvidence, CertificateSource, Clock, Config, Inspector, Server};
use anyhow::Context;
use futures::FutureExt;
use kube::Client;
use kube_unions_api::{self as api, ServerClock};
use kube_unions_command::signals::StopSignals;
use kube_unions_core::catalog::Catalog;
use prometheus_client::metrics::gauge::Gauge;
use std::future::pending;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

/// Exit code after a second signal, which cuts off the requests in flight.
const CUT_OFF: u8 = 2;

/// Longest wait for the collector to take the last spans.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Longest wait for the end of other tasks after an error.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Serves until a signal stops it.
pub fn run(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let policies = arguments.policies()?;
    telemetry::init(arguments.log_format.into())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // At least two threads: compiling a large CRD must not delay reviews.
        .worker_threads(available_parallelism().map_or(2, |it| it.get().max(2)))
        .enable_all()
        .build()
        .context("cannot start")?;
    let spans = arguments.spans(runtime.handle())?;
    let code = runtime.block_on(serve(arguments, policies, spans.clone()));
    let cut_off = code.as_ref().is_ok_and(|code| *code == ExitCode::from(CUT_OFF));
    if let Some(spans) = spans.filter(|_| !cut_off) {
        spans.finish(LAST_SPANS);
    }
    if code.is_err() {
        // The error is the last line of the log.
        runtime.shutdown_timeout(LAST_LINES);
    } else {
        // Tasks that are cut off may still run.
        runtime.shutdown_background();
    }
    code
}

async fn serve(
    arguments: ServeArgs,
    policies: Option<PolicyEnforcement>,
    spans: Option<Arc<dyn Spans>>,
) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::new()?;
    let connected = tokio::select! {
        connected = Wiring::connect(arguments, policies, spans) => connected?,
        name = signals.next() => {
            tracing::info!(signal = name, "signal received before the start: stopping");
            return Ok(ExitCode::SUCCESS);
        }
    };
    connected.run(signals).await
}

/// Everything that runs, connected by channels. Every task is supervised: here, or by the server.
struct Wiring {
    server: Server,
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// Tasks that run until the end.
    tasks: Supervised,
    /// Tasks that write to the cluster. They stop first, so that a stopping replica writes nothing.
    writers: Supervised,
}

impl Wiring {
    /// Connects the cluster with the server. Starts all tasks but those of the server.
    async fn connect(
        arguments: ServeArgs,
        policies: Option<PolicyEnforcement>,
        spans: Option<Arc<dyn Spans>>,
    ) -> anyhow::Result<Self> {
        let metrics = Metrics::new();
        let link = Link::new(metrics.watch_connected.clone(), metrics.watch_proven.clone());
        let clock = ServerClock::new(metrics.clock_difference.clone());
        let (publish, catalogs) = watch::channel(None);

        let client = if arguments.sources.from.is_empty() {
            let remedy = "give --from, or a kubeconfig";
            Some(api::connect(arguments.kubeconfig.as_deref(), None, &clock, remedy).await?)
        } else {
            let sources = arguments.sources.clone();
            // A pipe may never be written.
            let assembly = spawn_blocking(move || sources.assembly()).await.context("cannot read --from")??;
            publish.send_replace(Some(Arc::new(assembly.catalog)));
            None
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
        let supply = Supply::new(&arguments, trust, held);
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
        let server = Server::bind(config.clone(), metrics).await?;
        if let CertificateSource::SelfSigned { ca_file } = &config.certificate {
            tracing::info!(ca = ca_file.display().to_string(), "self-signed certificate");
        }
        let mut tasks = Supervised::default();
        tasks.spawn(ServeTask::SharedCertificate, supply.keep(client.clone(), clock.clone(), authority_expiry));
        let mut writers = Supervised::default();
        if let (Some(client), Some(cluster), Some(registration)) = (&client, &cluster, arguments.registration()) {
            let signals = controllers::Signals {
                catalogs: server.in_force(),
                declarable: cluster.declarable(),
                trust: trusted,
                coverage,
                registered: confirm,
                held: report,
                inspection,
                ready: Box::new(server.readiness()),
                clock,
                metrics: registration_metrics,
            };
            writers.spawn(ServeTask::Registration, controllers::register(client.clone(), registration, signals));
        }
        if let (Some(client), Some(policies)) = (&client, policies) {
            let signals =
                PolicySignals { catalogs: server.in_force(), registered, coverage: cover, metrics: policy_metrics };
            writers.spawn(ServeTask::Policies, controllers::enforce(client.clone(), policies, signals));
        }
        if let Some(cluster) = cluster {
            tasks.spawn(ServeTask::Watch, async move { cluster.follow(link, publish).await });
        }
        Ok(Self { server, catalogs, tasks, writers })
    }

    /// Serves until a signal, or until a task ends, which only a bug does.
    async fn run(self, mut signals: StopSignals) -> anyhow::Result<ExitCode> {
        let Self { server, catalogs, mut tasks, mut writers } = self;
        let (stop, stopped) = oneshot::channel::<()>();
        let mut stop = Some(stop);
        let mut serving = pin!(server.run(catalogs, async { stopped.await.unwrap_or_default() }));
        loop {
            tokio::select! {
                end = &mut serving => {
                    end?;
                    return Ok(ExitCode::SUCCESS);
                }
                ended = tasks.ended() => return Err(ended.into()),
                ended = writers.ended() => return Err(ended.into()),
                name = signals.next() => {
                    let Some(stop) = stop.take() else {
                        tracing::warn!(signal = name, "second signal: requests in flight are cut off");
                        return Ok(ExitCode::from(CUT_OFF));
                    };
                    tracing::info!(signal = name, "signal received: stopping");
                    writers.stop().await;
                    // The receiver is gone only if the server has ended.
                    stop.send(()).ok();
                }
            }
        }
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
