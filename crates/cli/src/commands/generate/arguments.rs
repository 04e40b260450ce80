//! The arguments of `generate`, and the kinds that they select.

use crate::input::connection::ClusterArgs;
use crate::input::kinds;
use crate::input::kinds::asked::UnknownKind;
use crate::input::manifest::{self, Document, ManifestFile, PathArgs};
use crate::input::require::RequireArg;
use crate::input::values::{FindingsFormat, only};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args};
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::GroupKind;
use kube_unions_go::FindingKind;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(
    mut_args(only("paths", crds)),
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

  # Propose a UnionDeclaration for CRDs whose Go types are not at hand
  kube-unions generate --from-crd crds/ > declarations.yaml

  # Propose for one CRD of the cluster, and suggest what its descriptions say
  kube-unions generate --from-crd --suggest --kind certificates.cert-manager.io

  # Record the findings of today, and fail in CI only for new ones
  kube-unions generate --go ./api config/crd/bases --write \\
    --baseline unions-baseline.json --update-baseline
  kube-unions generate --go ./api config/crd/bases --check \\
    --baseline unions-baseline.json

Exit codes:
  0  every marked union is declared (with --check also: nothing would change)
  1  a union was left out, or with --check: a CRD would change, or the baseline has entries that no longer occur, or \
with --require: there are no markers of unions; the output is complete
  2  an input could not be read; the rest was processed"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct GenerateArgs {
    /// Folder with Go sources, read recursively, or a Go file; repeat for several
    ///
    /// Like the go command, skips hidden folders, testdata, vendor, tests, and files that build constraints exclude. A folder
    /// that is named here is never skipped.
    // One value each, because paths follow.
    #[arg(long, required_unless_present = "from_crd", num_args = 1, value_name = "DIR")]
    pub(super) go: Vec<PathBuf>,
    /// Propose a `UnionDeclaration` from the rules and validations of the CRDs, without Go sources
    ///
    /// Prints the unions that CEL rules, `oneOf`, `not` or `maxProperties` enforce already, each with its evidence as a comment,
    /// and the pod templates. Without a path, reads the CRDs of the cluster. Changes no CRD.
    #[arg(long, conflicts_with_all = ["go", "tags", "in_schema", "allow_ambiguous", "allow", "baseline", "write", "check"])]
    pub(super) from_crd: bool,
    /// Also print unions that no validation enforces: those that descriptions state, and enums whose values name fields
    ///
    /// They come in declarations of their own, which only observe: with `normalization: Disabled` and `validationActions: [Audit]`.
    /// Each quotes its sentence. A sentence may be wrong.
    #[arg(long, requires = "from_crd", conflicts_with = "go")]
    pub(super) suggest: bool,
    /// Process only this kind, named as in kubectl: plural, singular, short name or kind, alone or with .GROUP; repeat for several
    /// [default: all kinds]
    #[arg(long, num_args = 1, value_name = "KIND")]
    pub(super) kind: Vec<String>,
    #[command(flatten)]
    pub(super) paths: PathArgs,
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
    /// File with the findings that are known and do not count
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Write the findings of this run to the baseline. With --kind, keep those of other kinds
    #[arg(long, requires = "baseline")]
    pub(super) update_baseline: bool,
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
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

fn crds(paths: Arg) -> Arg {
    paths.required_unless_present_any(["from_crd", "filename"]).help(
        "Files and folders with CRDs, `-` is standard input. Other documents pass unchanged \
         [default with --from-crd: the cluster]",
    )
}

/// Returns the parser of rule names. It suggests similar ones and lists all.
fn rule_parser() -> impl TypedValueParser<Value = FindingKind> {
    let values = FindingKind::ALL.iter().map(|kind| PossibleValue::new(kind.name()).help(kind.meaning()));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
        .try_map(|name| FindingKind::named(&name).ok_or("no rule has this name"))
}

impl GenerateArgs {
    /// Returns the kinds of `--kind`, `None` for all.
    pub(super) fn selected(&self, files: &[ManifestFile]) -> Result<Option<BTreeSet<GroupKind>>, UnknownKind> {
        if self.kind.is_empty() {
            return Ok(None);
        }
        let documents = files.iter().flat_map(ManifestFile::documents).filter(Document::is_definition);
        let definitions: Vec<Definition> =
            documents.filter_map(|document| Definition::from_json(&document.text).ok()).collect();
        if definitions.is_empty() {
            return Ok(None);
        }
        let place = match &*self.paths.all() {
            [] => "on the cluster".to_owned(),
            paths => format!("in {}", manifest::list(paths)),
        };
        kinds::asked::definitions(&definitions, &self.kind, &place)
    }

    /// Names the reason that there is nothing to do with the files.
    pub(super) fn nothing_to_do(&self, files: &[ManifestFile]) -> String {
        let paths = self.paths.all();
        if paths.is_empty() {
            return "no CustomResourceDefinition on the cluster".to_owned();
        }
        if files.iter().all(|file| file.documents().is_empty()) {
            return manifest::empty(&paths);
        }
        format!("no CustomResourceDefinition in {}", manifest::list(&paths))
    }
}
