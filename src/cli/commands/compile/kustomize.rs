//! `--to kustomize`: the OpenAPI document from which kustomize learns how custom resources merge.
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
use kube_unions_manifests::counts::count;
use std::path::{Path, PathBuf};
use strategic_merge_patch::{MergeStrategy, Patcher};

/// A document to print.
pub(in crate::cli::commands) struct KustomizeRequest<'r> {
    /// Files and folders with CRDs.
    pub(in crate::cli::commands) from: &'r [PathBuf],
    /// A document with other kinds.
    pub(in crate::cli::commands) add_to: Option<&'r Path>,
    pub(in crate::cli::commands) require: RequireArg,
    pub(in crate::cli::commands) output: ObjectFormat,
}

/// Prints the document.
pub(in crate::cli::commands) fn run(request: &KustomizeRequest<'_>) -> anyhow::Result<Verdict> {
    let documents = manifest::read(request.from)?;
    let mut document = KustomizeDocument::read(request.add_to)?;

    let assembly = kinds::assemble(documents, BuiltinUnionsArg::Ignored);
    manifest::fail_on(&assembly.problems)?;
    let definitions = assembly.declared_definitions();
    if definitions.is_empty() {
        bail!("no CustomResourceDefinition in {}", manifest::list(request.from));
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
    output::print(match request.output {
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
        return Ok(request.require.warn(format_args!(
            "nothing merges by a key: the schemas in {} have no list with `x-kubernetes-list-type: map` or `set`",
            manifest::list(request.from)
        )));
    }
    Ok(Verdict::Accepted)
}

/// Returns an error about a schema with its position.
fn unfit(origin: &Document, version: usize, error: &strategic_merge_patch::SchemaError) -> anyhow::Error {
    let pointer = format!("/spec/versions/{version}/schema/openAPIV3Schema{}", error.place().to_pointer());
    Problem::of_document(origin, &pointer, error.to_string()).into()
}
