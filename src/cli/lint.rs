//! `lint`: reports every fault in the unions that CRDs and `UnionDeclaration`s declare, with its place in the file.

use super::counts::count;
use super::diagnostic::{self, Diagnostic};
use super::kinds::{self, Assembly, BuiltinUnionsArg};
use super::manifest::{self, Problem};
use super::output::{self, Paint};
use super::require::RequireArg;
use super::{ReportFormat, Verdict, misspelt};
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `lint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line is `file:line:column: path: severity: message`. A declaration with an error has no effect. A declaration with a \
warning has effect, but may surprise. A note tells that the schema lacks a part of a UnionDeclaration, which is left out, or \
something else worth knowing. A fault of several versions has one line that names them.

The last line, on standard error, counts the CRDs and unions that were checked.

Exit codes:
  0  no errors (and, with --strict, no warnings; notes never count)
  1  at least one, or with --require: no union was found
  2  a file could not be read; the others were checked

Examples:
  kube-unions lint crds/
  kube-unions lint --strict -o json crd.yaml declaration.yaml
  kustomize build config/crd | kube-unions lint -")]
pub(super) struct LintArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input
    ///
    /// A `UnionDeclaration` is checked against the schema of its target: include the CRD, or the OpenAPI document of a
    /// built-in type.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnionsArg,
    /// Exit with 1 for warnings, too
    #[arg(short = 'W', long)]
    strict: bool,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

pub(super) fn run(arguments: &LintArgs) -> anyhow::Result<Verdict> {
    let manifests = manifest::files(&arguments.paths);
    let documents: Vec<_> = manifests.files.iter().flat_map(manifest::ManifestFile::documents).collect();
    let misspelt = documents.iter().filter_map(|document| {
        let message = misspelt::kind_of_declaration(document)?;
        Some(Diagnostic::of_problem(&Problem::of_document(document, "", message)))
    });
    let mut diagnostics: Vec<Diagnostic> = misspelt.collect();
    let assembly = kinds::assemble(documents, arguments.builtin_unions);
    diagnostics.extend(manifests.problems.iter().map(Diagnostic::of_problem));
    diagnostics.extend(diagnostic::diagnose(&assembly));
    diagnostics.sort();
    print(&diagnostics, arguments.output)?;

    let is_rejected = |diagnostic: &Diagnostic| diagnostic.is_error() || arguments.strict && !diagnostic.is_note();
    let lack = assembly.lack(&arguments.paths);
    match (manifests.problems.len() + assembly.problems.len(), lack) {
        (0, Some(lack)) => bail!(lack),
        (0, None) if diagnostics.is_empty() && assembly.catalog.union_count() == 0 => {
            Ok(arguments.require.warn(format_args!("nothing to check: {}", assembly.summary())))
        }
        (0, None) => {
            output::note(summary(&assembly, &diagnostics));
            Ok(Verdict::rejected_if(diagnostics.iter().any(is_rejected)))
        }
        (unread, _) => {
            output::note(summary(&assembly, &diagnostics));
            bail!("{} kept something from being checked", count(unread, "problem"))
        }
    }
}

/// Returns the summary, for example `3 CRDs, 5 unions, 1 problem, 2 notes`.
fn summary(assembly: &Assembly, diagnostics: &[Diagnostic]) -> String {
    let notes = diagnostics.iter().filter(|diagnostic| diagnostic.is_note()).count();
    let problems = count(diagnostics.len() - notes, "problem");
    let notes = if notes > 0 { format!(", {}", count(notes, "note")) } else { String::new() };
    format!("{}, {problems}{notes}", assembly.summary())
}

fn print(diagnostics: &[Diagnostic], format: ReportFormat) -> anyhow::Result<()> {
    let text = match format {
        ReportFormat::Text => {
            let paint = Paint::of(&std::io::stdout());
            diagnostics.iter().map(|diagnostic| diagnostic.line(paint) + "\n").collect()
        }
        ReportFormat::Json => serde_json::to_string_pretty(diagnostics)? + "\n",
    };
    output::print(text)
}
