//! `audit` of the image: judges every stored object of a cluster, and writes reports into it. The command line has other outputs.

use crate::audit::kinds::{AuditedKind, warn_of_faults};
use crate::audit::reports::ReportRun;
use crate::audit::reports::api::ReportApi;
use crate::follow;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kube_unions_api as api;
use kube_unions_command::connection::{ClusterArgs, block_on};
use kube_unions_command::signals::StopSignals;
use kube_unions_command::sources::BuiltinUnionsArg;
use kube_unions_command::{Verdict, output};
use kube_unions_manifests::counts::count;

/// Arguments of `audit` in the image.
#[derive(Debug, Args)]
#[command(after_help = "\
Judges every stored object of the kinds with unions as the webhook does, and writes what is invalid into reports: `Report` of \
OpenReports if the cluster serves it, else `PolicyReport`. The chart runs this command with `audit.enabled`. The program \
`kube-unions` prints findings, too.

Exit codes:
  0  the reports are written, whatever was found
  2  something could not be audited or written; the rest was

Example:
  kube-unions-webhook audit -A -o report")]
pub struct ReportingArgs {
    /// Audit the objects of all namespaces
    #[arg(short = 'A', long, required = true)]
    all_namespaces: bool,
    /// Output format
    #[arg(short, long, value_enum, required = true)]
    output: ReportOutput,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnionsArg,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReportOutput {
    /// Reports in the cluster
    Report,
}

pub fn run(arguments: &ReportingArgs) -> anyhow::Result<Verdict> {
    write_reports(&arguments.cluster, arguments.builtin_unions)
}

/// Audits a cluster, and writes reports into it. Fails if something could not be audited or written, after the rest was.
pub fn write_reports(cluster: &ClusterArgs, builtin_unions: BuiltinUnionsArg) -> anyhow::Result<Verdict> {
    block_on(async {
        let mut signals = StopSignals::new()?;
        tokio::select! {
            verdict = audit(cluster, builtin_unions) => verdict,
            signal = signals.next() => bail!("interrupted by {signal}: reports that were not yet written are as they were"),
        }
    })
}

async fn audit(cluster: &ClusterArgs, builtin_unions: BuiltinUnionsArg) -> anyhow::Result<Verdict> {
    let client = cluster.client().await?;
    let resources = api::resources(&client).await?;
    let reports = ReportApi::of(&resources)?;
    let learnt = follow::learn(&client, builtin_unions.into(), || {}).await;
    let learnt = learnt.context("the cluster's unions cannot be learnt")?;
    warn_of_faults(
        &learnt.catalog,
        "the conditions of `kubectl get uniondeclarations` and `kube-unions lint` name them",
    );
    let kinds = AuditedKind::all(&learnt.catalog, &resources);
    for kind in &kinds {
        kind.note_version(&resources);
    }
    let outcome = ReportRun::new(&client, &learnt.lacking).write(&kinds, &reports).await;
    output::summary(outcome.sentence());
    if outcome.problems > 0 {
        bail!("{} kept something from being audited or reported", count(outcome.problems, "problem"));
    }
    Ok(Verdict::Accepted)
}
