//! `serve`: runs the webhook.
//!
//! This is the one place where the cluster and the webhook meet: [`Wiring`]. Catalogs pass from the cluster to the server through a channel,
//! and the server asks the cluster about declarations through a function. `arguments` has the flags, `certificate` connects the
//! sources of the serving certificate.

mod arguments;
mod certificate;
mod values;

pub(super) use arguments::ServeArgs;
pub(super) use values::{duration, namespace};

use crate::api::{self, ServerClock};
use crate::cli::signals::StopSignals;
use crate::controllers::{self, Coverage, PolicyEnforcement, PolicySignals, RegisteredBundle, RegisteredKinds};
use crate::follow::{Cluster, Link};
use crate::supervision::{ServeTask, Supervised};
use crate::telemetry::{self, Metrics, Spans};
use crate::webhook::{CatalogEvidence, CertificateSource, Clock, Config, Inspector, Server};
use anyhow::Context;
use certificate::Supply;
use kube_unions_core::catalog::Catalog;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Exit code after a second signal, which cuts off the requests in flight.
const CUT_OFF: u8 = 2;

/// Longest wait for the collector to take the last spans.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Longest wait for the end of other tasks after an error.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Serves until a signal stops it.
pub(super) fn run(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let policies = arguments.policies()?;
    telemetry::init(arguments.log_format)?;
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
    let signals = StopSignals::new()?;
    Wiring::connect(arguments, policies, spans).await?.run(signals).await
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
            publish.send_replace(Some(Arc::new(arguments.sources.assembly()?.catalog)));
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
