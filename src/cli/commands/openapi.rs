//! `openapi`: another name of `compile --to kustomize`.

use super::compile::{KustomizeRequest, print_for_kustomize};
use crate::cli::input::require::RequireArg;
use crate::cli::input::values::ObjectFormat;
use crate::cli::report::Verdict;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `openapi`.
#[derive(Debug, Args)]
#[command(after_help = "\
Save the document beside a kustomization, and name it there:

  openapi:
    path: openapi.json

Patches of the kustomization then merge the lists of custom resources by their keys, as those of Deployments. kustomize reads one \
document, in place of its own, so this one has the rules of built-in kinds as well.

It is the document of `kube-unions compile --to kustomize`. Standard error names each place that kustomize merges in another way than the schema asks for, and what to write in a patch.

Exit codes:
  0  every kind is in the document
  1  a declaration has an error, or, with --require, no kind has a list that merges; the document is complete
  2  wrong usage, or input that cannot be read

Examples:
  kube-unions openapi --from crds/ > openapi.json
  kubectl get crd -o yaml | kube-unions openapi --from - > openapi.json

  # Extend the document that a kustomization has already
  kube-unions openapi --from crds/ --add-to rollouts.json > openapi.json")]
pub(crate) struct OpenapiArgs {
    /// Files and folders with CRDs and `UnionDeclarations`, `-` is standard input
    ///
    /// Folders are searched for .yaml, .yml and .json files, except in hidden folders. Documents of other kinds are skipped.
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// An OpenAPI document with other kinds, as `kustomize openapi fetch` saves it
    ///
    /// Its rules take precedence over those of built-in kinds. Those of --from take precedence over both.
    #[arg(long, value_name = "FILE")]
    add_to: Option<PathBuf>,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value = "json")]
    output: ObjectFormat,
}

pub(super) fn run(arguments: &OpenapiArgs) -> anyhow::Result<Verdict> {
    print_for_kustomize(&KustomizeRequest {
        from: &arguments.from,
        add_to: arguments.add_to.as_deref(),
        require: arguments.require,
        output: arguments.output,
    })
}
