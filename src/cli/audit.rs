//! `audit`: finds stored objects that the webhook would reject, before enforcement is turned on.
//!
//! Objects come from a cluster ([`live`]) or from files ([`offline`]). The [`auditor`] judges one after the other with the rules
//! of the webhook, and prints findings as it goes: memory does not grow with the number of stored objects.

mod auditor;
mod live;
mod offline;
mod report;
mod rules;
mod stop;
mod tally;

use super::exit::Verdict;
use super::kinds::BuiltinUnions;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every stored object of the kinds with unions is judged by the code of the webhook: `invalid`, if creating it as it is would be \
rejected; `would change`, if the next write of it would be normalised, even one that is about something else. Nothing is written.

The cluster's unions are those that the webhook would know there: of CRDs, of UnionDeclarations, of built-in types that these \
are about. That takes the right to list CRDs and UnionDeclarations, and the objects. Each kind is read at one version, the \
preferred one if it has unions there. Objects of namespaces that the webhook leaves alone are audited, too.

Findings go to standard output while they are found, the summary to standard error. After Ctrl-C the output is closed \
properly, and says how far it came.

Exit codes:
  0  no object is invalid
  1  at least one is
  2  usage, unreadable input, an interrupt, or a kind that could not be listed; what could be audited was

Examples:
  kube-unions audit -A
  kube-unions audit rollouts gateways.example.com -n shop -o json
  kubectl get rollouts -A -o yaml | kube-unions audit --from crds/ --from - -o sarif > audit.sarif")]
pub(super) struct AuditArgs {
    /// The kinds as kubectl takes them: plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP
    /// [default: every kind with unions]
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// A file or folder with objects, and with what describes their kinds: CRDs, `UnionDeclarations`, saved OpenAPI documents;
    /// instead of a cluster. `-` is standard input; may be given several times
    // One value each: what follows may be a kind.
    #[arg(long, num_args = 1, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Only the objects of a namespace, and those that are in none [default: that of the kubeconfig's context; with --from all]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The objects of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Whether unions count that OpenAPI documents themselves declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnions,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: AuditFormat,
    #[command(flatten)]
    cluster: super::connection::ContextArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum AuditFormat {
    /// A row each, for people
    #[default]
    Table,
    /// One object: the kinds, the findings, the summary
    Json,
    /// SARIF 2.1.0, for tools that show findings beside code
    Sarif,
}

pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    match (arguments.from.is_empty(), arguments.cluster.is_given()) {
        (true, _) => return live::run(arguments),
        (false, true) => {
            anyhow::bail!("give --from, or --kubeconfig and --context: files are audited without a cluster")
        }
        (false, false) => {}
    }
    offline::run(arguments)
}
