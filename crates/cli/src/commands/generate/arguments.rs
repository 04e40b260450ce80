//! The arguments of `generate`.

use crate::input::definitions::DefinitionArgs;
use crate::input::require::RequireArg;
use crate::input::values::{FindingsFormat, only};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kube_unions_go::FindingKind;
use std::path::PathBuf;

const PATHS: &str = "Files and folders with CRDs, `-` is standard input. Other documents pass unchanged";

#[derive(Debug, Args)]
#[command(
    mut_args(only("paths", |paths| paths.required_unless_present("filename").help(PATHS))),
    after_help = "\
Reads the markers +union, +unionDiscriminator, +unionMember[=Name][,optional], +unionDeprecated, +unionDiscriminatedBy=Field \
and their +k8s: spellings. Parses the sources without running them, and needs no Go tool chain.

Prints the CRDs to standard output and the report to standard error; with --write or --check, the report to standard output. \
Leaves out a union that is ambiguous or that the schema does not allow, and declares the rest.

Examples:
  # Declare the unions in the CRDs that controller-gen wrote
  kube-unions generate --go ./api config/crd/bases --write

  # Apply CRDs whose Go types are in two folders
  kube-unions generate --go ./api --go ../common config/crd/bases/*.yaml | \\
    kubectl apply -f -

  # Fail in CI if a CRD is out of date
  kube-unions generate --go ./api config/crd/bases --check

Exit codes:
  0  every marked union is declared (with --check also: nothing would change)
  1  a union was left out, or with --check: a CRD would change, or with --require: there are no markers of unions; the output is complete
  2  an input could not be read; the rest was processed"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct GenerateArgs {
    /// Folder with Go sources, read recursively, or a Go file; repeat for several
    ///
    /// Like the go command, skips hidden folders, testdata, vendor, tests, and files that build constraints exclude. A folder
    /// that is named here is never skipped.
    // One value each, because paths follow.
    #[arg(long, required = true, num_args = 1, value_name = "DIR")]
    pub(super) go: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) crds: DefinitionArgs,
    /// Add build tags to those of Linux on amd64
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub(super) tags: Vec<String>,
    /// Declare unions in the schema, as `x-kubernetes-unions`, instead of in the annotation; what only the annotation can say
    /// stays there
    #[arg(long)]
    pub(super) in_schema: bool,
    /// Do not exit with 1 for ambiguous unions; they are left out all the same
    #[arg(long)]
    pub(super) allow_ambiguous: bool,
    /// Do not exit with 1 for findings of this rule; repeat for several
    #[arg(long, num_args = 1, value_name = "RULE", value_parser = rule_parser(), hide_possible_values = true)]
    pub(super) allow: Vec<FindingKind>,
    /// Write the CRDs back to their files
    #[arg(short, long, conflicts_with = "check")]
    pub(super) write: bool,
    /// Print only the report; exit with 1 if a CRD would change
    #[arg(long)]
    pub(super) check: bool,
    /// Format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: FindingsFormat,
    #[command(flatten)]
    pub(super) require: RequireArg,
}

/// Returns the parser of rule names. It suggests similar ones and lists all.
fn rule_parser() -> impl TypedValueParser<Value = FindingKind> {
    let values = FindingKind::ALL.iter().map(|kind| PossibleValue::new(kind.name()).help(kind.meaning()));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
        .try_map(|name| FindingKind::named(&name).ok_or("no rule has this name"))
}
