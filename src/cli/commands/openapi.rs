//! `openapi`: prints the OpenAPI document from which kustomize learns how custom resources merge.
//!
//! kustomize knows the lists of built-in kinds only, and replaces every other list. Without `openapi: path:` in a kustomization
//! it uses a document of its own; with it, that file alone, so the document has the built-in kinds too. [`document`] builds it,
//! [`limits`] tells where kustomize merges in another way than the schema asks for.

mod document;
mod limits;

use self::document::{CustomKind, KustomizeDocument};
use self::limits::KustomizeLimits;
use crate::cli::input::kinds::{self, BuiltinUnionsArg};
use crate::cli::input::manifest::{self, Document, Problem};
use crate::cli::input::require::RequireArg;
use crate::cli::input::values::ObjectFormat;
use crate::cli::report::output::{self, Paint};
use crate::cli::report::{Verdict, diagnostic};
use anyhow::bail;
use clap::Args;
use kube_unions_manifests::counts::count;
use std::path::PathBuf;
use strategic_merge_patch::{MergeStrategy, Patcher};

/// Arguments of `openapi`.
#[derive(Debug, Args)]
#[command(after_help = "\
Save the document beside a kustomization, and name it there:

  openapi:
    path: openapi.json

Patches of the kustomization then merge the lists of custom resources by their keys, as those of Deployments. kustomize reads one \
document, in place of its own, so this one has the rules of built-in kinds as well.

Standard error names each place that kustomize merges in another way than the schema asks for, and what to write in a patch.

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
    let documents = manifest::read(&arguments.from)?;
    let mut document = KustomizeDocument::read(arguments.add_to.as_deref())?;

    let assembly = kinds::assemble(documents, BuiltinUnionsArg::Ignored);
    manifest::fail_on(&assembly.problems)?;
    let definitions = assembly.declared_definitions();
    if definitions.is_empty() {
        bail!("no CustomResourceDefinition in {}", manifest::list(&arguments.from));
    }
    let paint = Paint::of(&std::io::stderr());
    let diagnostics = diagnostic::diagnose(&assembly);
    for diagnostic in &diagnostics {
        output::note(diagnostic::line(diagnostic, paint));
    }

    let mut limits = KustomizeLimits::default();
    let (mut versions, mut lists, mut unions) = (0_usize, 0, 0);
    for (origin, definition) in &definitions {
        for version in definition.versions().iter().filter(|version| version.served) {
            let rules = Patcher::resource_rules(definition.kind(), &version.schema)
                .map_err(|error| unfit(origin, version.position, &error))?;
            let kind = CustomKind { definition, kind: definition.group_kind().at(&version.name), rules };
            // Every object has the rules of `metadata`.
            for rule in kind.rules.iter().filter(|rule| !document::is_of_metadata(rule)) {
                lists += usize::from(matches!(rule.strategy, MergeStrategy::Keys(_) | MergeStrategy::Set));
                unions += usize::from(rule.retain_keys);
            }
            limits.add(&kind, &version.schema);
            document.add(&kind);
            versions += 1;
        }
    }
    output::print(match arguments.output {
        ObjectFormat::Json => document.to_json()? + "\n",
        ObjectFormat::Yaml => manifest::to_yaml(&document.to_json()?)?,
    })?;
    for line in limits.lines() {
        output::hint(line);
    }
    output::note(format_args!(
        "{}: {}, {}",
        count(versions, "version"),
        count(lists, "merging list"),
        count(unions, "union"),
    ));
    if diagnostics.iter().any(diagnostic::Diagnostic::is_error) {
        return Ok(Verdict::Rejected);
    }
    if lists == 0 {
        return Ok(arguments.require.warn(format_args!(
            "nothing merges by a key: the schemas in {} have no list with `x-kubernetes-list-type: map` or `set`",
            manifest::list(&arguments.from)
        )));
    }
    Ok(Verdict::Accepted)
}

/// Returns an error about a schema with its position.
fn unfit(origin: &Document, version: usize, error: &strategic_merge_patch::SchemaError) -> anyhow::Error {
    let pointer = format!("/spec/versions/{version}/schema/openAPIV3Schema{}", error.place().to_pointer());
    Problem::of_document(origin, &pointer, error.to_string()).into()
}
