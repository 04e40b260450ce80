//! `serve`: runs the webhook.
//!
//! `replica` connects the cluster and the webhook, and is the one place where they meet. Here are the sockets and the signals.
//! `arguments` has the flags.

mod arguments;
mod entries;
mod replica;

pub use arguments::ServeArgs;
pub(super) use arguments::duration;
pub use replica::{CatalogSource, Replica, Task};

use crate::controllers::PolicyEnforcement;
use crate::supervision::Supervised;
use crate::telemetry::{self, Metrics, Spans};
use crate::webhook::Server;
use anyhow::Context;
use kube_unions_api::{self as api, ServerClock};
use kube_unions_command::signals::StopSignals;
use kube_unions_core::catalog::Catalog;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};
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
    let replica = tokio::select! {
        replica = replica(&arguments, policies, spans) => replica?,
        name = signals.next() => {
            tracing::info!(signal = name, "signal received before the start: stopping");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let Replica { state, catalogs, tasks, writers } = replica;
    let server = Server::bind(state).await?;
    if arguments.tls_self_signed {
        tracing::info!(ca = arguments.ca_file().display().to_string(), "self-signed certificate");
    }
    run_until_signal(server, catalogs, [tasks, writers].map(Supervised::from_iter), signals).await
}

async fn replica(
    arguments: &ServeArgs,
    policies: Option<PolicyEnforcement>,
    spans: Option<Arc<dyn Spans>>,
) -> anyhow::Result<Replica> {
    let metrics = Metrics::new();
    let source = if arguments.sources.from.is_empty() {
        let clock = ServerClock::new(SystemTime::now, metrics.clock_difference.clone());
        let remedy = "give --from, or a kubeconfig";
        let client = api::connect(arguments.kubeconfig.as_deref(), None, &clock, remedy).await?;
        CatalogSource::Cluster(client, clock)
    } else {
        let sources = arguments.sources.clone();
        // A pipe may never be written.
        let assembly = spawn_blocking(move || sources.assembly()).await.context("cannot read --from")??;
        CatalogSource::Files(Arc::new(assembly.catalog))
    };
    Ok(Replica::new(source, arguments, policies, metrics, spans)?)
}

/// Serves until a signal, or until a task ends, which only a bug does.
async fn run_until_signal(
    server: Server,
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    [mut tasks, mut writers]: [Supervised; 2],
    mut signals: StopSignals,
) -> anyhow::Result<ExitCode> {
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
