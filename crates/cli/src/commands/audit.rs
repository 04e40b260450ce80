//! `audit`: finds stored objects that the webhook would reject, before enforcement is turned on.
//!
//! Objects come from a cluster ([`live`]) or from files ([`offline`]). The [`auditor`] has `kube_unions_webhook::audit` judge one after the
//! other with the rules of the webhook, and prints findings as it goes: memory does not grow with the number of stored objects. Reports in
//! the cluster are written there, too.

mod auditor;
mod live;
mod offline;
mod report;
mod rules;

use crate::input::builtin::PresetsArg;
use crate::input::connection::ClusterArgs;
use crate::input::kinds::{SourceArgs, or_cluster};
use crate::input::more_paths::take_more_paths;
use crate::input::require::RequireArg;
use crate::input::values::only;
use crate::report::Verdict;
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
// One value for each flag: a kind may follow. More paths are told by their looks.
#[command(mut_args(only("from", |from| or_cluster(from).num_args(1))), after_help = "\
Judges every stored object of the kinds with unions as the webhook does. An object is `invalid` if the webhook would deny its \
creation. An object `would change` if the webhook would normalise its next write, even if that write touches other fields. \
Nothing is written, except with -o report.

Objects in files get the defaults of the API server first. Built-in kinds are known, with the unions of the presets, unless --from \
describes them. The API server itself refuses what violates a preset, so it is invalid in files.

On a cluster, the unions come from CRDs and UnionDeclarations. This takes the right to list both, and the objects. Each kind is \
read at one version: the preferred one if it has unions, else another. Namespaces that the webhook skips are audited, too.

Findings go to standard output as they are found, the summary to standard error. Ctrl-C closes the report and prints how far the \
audit came.

Exit codes:
  0  no object is invalid
  1  at least one object is invalid, or with --require: there are no objects
  2  wrong usage, unreadable input, an interrupt, or a kind that could not be listed; the rest was audited

With -o report, what is invalid goes into reports of the cluster: `Report` of OpenReports if it serves them, else `PolicyReport`, \
one for each namespace. The exit code is then 0 if all are written, whatever was found.

Examples:
  kube-unions audit -A
  kube-unions audit -A -o report
  helm template ./chart | kube-unions audit -f -
  kube-unions audit rollouts gateways.example.com -n shop -o json
  kubectl get rollouts -A -o yaml | \\
    kube-unions audit --from crds/ -f - -o sarif > audit.sarif")]
pub(crate) struct AuditArgs {
    /// The kinds as in kubectl: plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP
    /// [default: every kind with unions]
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    presets: PresetsArg,
    /// Files and folders with objects to audit, `-` is standard input
    ///
    /// Their CRDs and `UnionDeclarations` count as those of --from, and objects of --from are audited, too.
    #[arg(short, long, num_args = 1, value_name = "PATH")]
    filename: Vec<PathBuf>,
    /// Audit the objects of this namespace, and objects without one [default: the namespace of the kubeconfig's context;
    /// with --from and -f all]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Audit the objects of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: AuditFormat,
    #[command(flatten)]
    require: RequireArg,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum AuditFormat {
    /// A row for each finding, for people
    #[default]
    Table,
    /// One object: kinds, findings, summary
    Json,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// Reports in the cluster: `OpenReports`, or `PolicyReports`
    Report,
}

pub(super) fn run(mut arguments: AuditArgs) -> anyhow::Result<Verdict> {
    let reads_files = !(arguments.sources.from.is_empty() && arguments.filename.is_empty());
    let more = take_more_paths(&mut arguments.kinds, reads_files, "-f")?;
    if arguments.output == AuditFormat::Report {
        return write_reports(&arguments, reads_files);
    }
    if !reads_files {
        return live::run(&arguments);
    }
    arguments.filename.extend(more);
    arguments.cluster.refuse_beside_files()?;
    offline::run(&arguments)
}

/// Writes reports of everything that a cluster has stored. What is left out would be gone from them.
fn write_reports(arguments: &AuditArgs, reads_files: bool) -> anyhow::Result<Verdict> {
    let is_whole = arguments.all_namespaces && arguments.kinds.is_empty() && !reads_files;
    if !is_whole || arguments.require.verdict() == Verdict::Rejected {
        bail!("`-o report` writes reports of a whole cluster: give -A, and no KIND, no files and no --require");
    }
    kube_unions_webhook::commands::audit::write_reports(&arguments.cluster, arguments.sources.builtin_unions)
}
