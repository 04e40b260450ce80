//! `lint`: reports every fault in the unions that CRDs and `UnionDeclaration`s declare, with its place in the file.
//!
//! [`against`] compares the unions with those of older files, [`rules`] with the rules beside them, and [`definitions`] judges CRDs as a
//! whole.

mod against;
mod definitions;
pub(super) mod rules;

use self::against::OlderFiles;
use crate::input::kinds::{self, Assembly, DeclarationArgs};
use crate::input::manifest::{self, Document, IndexedFiles, ManifestRole};
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::Verdict;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::diagnostic::{self, Diagnostic};
use crate::report::output::{self, Paint};
use crate::report::sarif::{FilePlace, SarifFinding};
use crate::report::{findings, json_list};
use clap::Args;
use kube_unions_core::declaration::FaultKind;
use kube_unions_manifests::counts::{self, count};
use kube_unions_manifests::{StandaloneKinds, misspelt};
use kube_unions_offline::HelpPage;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Each line is `file:line:column: path: severity: message`. A declaration with an error has no effect. A declaration with a \
warning has effect, but may surprise. A note tells that the schema lacks a part of a UnionDeclaration, which is left out, or \
something else worth knowing. A fault of several versions has one line that names them.

Each union is compared with the CEL rules of `x-kubernetes-validations` and with `oneOf`, `anyOf`, `allOf`, `not`, `minProperties` \
and `maxProperties` that the CRD has beside it. A disagreement is a warning that shows a smallest object. Rules that cannot be \
evaluated are a note, and so is one that fails for an object that the union rejects, too. Transition rules, and rules about other \
fields, do not count.
What the API server refuses in the schema of a CRD is an error, whether the CRD has unions or not.
With --against, each difference to the unions of older files has a line, too: an error breaks clients, a warning is safe only \
because unchanged violations are let through, a note is safe.

The last line, on standard error, counts the CRDs and unions that were checked.

Exit codes:
  0  no errors (and, with --strict, no warnings; notes never count)
  1  at least one, or with --require: no union was found
  2  a file could not be read; the others were checked

Examples:
  kube-unions lint crds/
  kube-unions lint --strict -o json crd.yaml declaration.yaml
  kube-unions lint -o sarif crds/ > lint.sarif
  kube-unions lint --against old-crds/ crds/
  kustomize build config/crd | kube-unions lint -")]
pub(crate) struct LintArgs {
    #[command(flatten)]
    declarations: DeclarationArgs,
    /// Files and folders with an older revision of the same kinds: also report what became of their unions
    ///
    /// Only versions of kinds that both have are compared. If the older files have no CRD for one of their UnionDeclarations, that
    /// of PATH serves both.
    #[arg(long, num_args = 1, value_name = "OLD")]
    against: Vec<PathBuf>,
    /// Exit with 1 for warnings, too
    #[arg(short = 'W', long)]
    strict: bool,
    /// Do not fail for documents that are missing: the files are a part of a project, for example those of a commit
    #[arg(long, conflicts_with = "require")]
    partial: bool,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
}

pub(super) fn run(arguments: &LintArgs) -> anyhow::Result<Verdict> {
    let paths = arguments.declarations.paths();
    let mut files = manifest::index(&paths);
    let mut diagnostics = Vec::new();
    let Checked { assembly, older, passed_over } = check(arguments, &mut files, &mut diagnostics);
    let problems = files.all_problems();
    diagnostics.extend(problems.iter().chain(&older.problems).map(Diagnostic::of_problem));
    let compared = older.compare(&assembly, &mut diagnostics);
    diagnostics.sort();
    let unread = problems.len() + assembly.problems.len() + older.problems.len();
    // A file that cannot be read may have what is missing.
    let missing = if unread > 0 || arguments.partial { None } else { assembly.missing(&paths) };
    let missing = missing.or_else(|| compared.as_ref().err().filter(|_| unread == 0).cloned());
    if arguments.partial {
        diagnostics.retain(|diagnostic| diagnostic.rule != FaultKind::MissingTarget);
    }
    let is_rejected = |diagnostic: &Diagnostic| diagnostic.is_error() || arguments.strict && !diagnostic.is_note();
    let is_hint = |diagnostic: &Diagnostic| diagnostic.rule == FaultKind::UndeclaredUnion;
    let is_nothing = diagnostics.iter().all(is_hint) && assembly.union_count() == 0 && missing.is_none();
    let unread_files = problems.iter().chain(&assembly.problems).chain(&older.problems);
    let problems = unread_files.map(ToString::to_string).chain(missing.clone()).collect();
    let passed_over = counts::passed_over(passed_over);
    let nothing = is_nothing.then(|| format!("nothing to check: {}{passed_over}", assembly.summary()));
    let summary = match missing {
        Some(_) => String::new(),
        None => summary(&assembly, &diagnostics, compared.ok().flatten()) + &passed_over,
    };
    let failure = missing.map(anyhow::Error::msg).or_else(|| kept_from(unread, "checked"));
    let conclusion = Conclusion::new(arguments.require, nothing, diagnostics.iter().any(is_rejected), summary);
    let conclusion = conclusion.beside(problems, failure);
    output::print_text(findings::report(
        arguments.output,
        Paint::of(&std::io::stdout()),
        &conclusion,
        |paint| diagnostics.iter().map(|diagnostic| diagnostic::line(diagnostic, paint) + "\n").collect(),
        || json_list::pretty(&diagnostics),
        FaultKind::ALL.iter().filter(|rule| is_result(**rule)).map(|rule| (rule.row(), help(*rule))),
        diagnostics.iter().filter(|diagnostic| is_result(diagnostic.rule)).map(result),
    )?)?;
    assembly.without_effect().iter().for_each(output::hint);
    conclusion.end()
}

/// The result of a check.
struct Checked {
    /// The documents that do not stand alone.
    assembly: Assembly,
    older: OlderFiles,
    /// The number of documents that describe no kinds.
    passed_over: usize,
}

/// Adds the diagnostics of all documents. Each CRD that stands alone is forgotten before the next is read, unless there are older files
/// to compare with.
fn check(arguments: &LintArgs, files: &mut IndexedFiles, diagnostics: &mut Vec<Diagnostic>) -> Checked {
    let builtin = arguments.declarations.sources.builtin_unions;
    let (mut kinds, mut compared) = (StandaloneKinds::new(builtin.into()), Vec::new());
    let mut passed_over = files.objects();
    files.each(ManifestRole::Kinds, |document| {
        let misspelt = misspelt::kind_of_declaration(&document);
        diagnostics.extend(misspelt.map(|message| Diagnostic::of_misspelt_kind(&document, message)));
        let describes_kinds = document.describes_kinds();
        if describes_kinds && document.is_object() {
            passed_over = passed_over.saturating_sub(1);
        }
        match describes_kinds {
            true if arguments.against.is_empty() => kinds.survey(&document),
            true => compared.push(document),
            false => {}
        }
    });
    let older = against::read(&arguments.against, &compared, builtin);
    let mut judge = |assembly: &Assembly| {
        diagnostics.extend(diagnostic::diagnose(assembly));
        let definitions = rules::subjects::definitions(assembly);
        diagnostics.extend(definitions::diagnostics(assembly, &definitions));
        diagnostics.extend(rules::diagnostics(assembly, &definitions));
    };
    let mut assembly = if arguments.against.is_empty() {
        files.each(ManifestRole::Kinds, |document| {
            let assembly =
                Some(document).filter(Document::describes_kinds).and_then(|document| kinds.compile(document));
            assembly.iter().for_each(&mut judge);
        });
        kinds.finish()
    } else {
        kinds::assemble(compared, builtin)
    };
    assembly.documents += files.objects();
    judge(&assembly);
    Checked { assembly, older, passed_over }
}

/// Returns the summary, for example `3 CRDs, 5 unions, 1 problem, 2 notes`, and the number of versions that were compared.
fn summary(assembly: &Assembly, diagnostics: &[Diagnostic], compared: Option<usize>) -> String {
    let notes = diagnostics.iter().filter(|diagnostic| diagnostic.is_note()).count();
    let problems = count(diagnostics.len() - notes, "problem");
    let notes = if notes > 0 { format!(", {}", count(notes, "note")) } else { String::new() };
    let compared = compared.map(|number| format!(", {} compared", count(number, "version"))).unwrap_or_default();
    format!("{}, {problems}{notes}{compared}", assembly.summary())
}

fn help(rule: FaultKind) -> HelpPage {
    if rule.is_revision() { HelpPage::AGAINST } else { HelpPage::LINT }
}

/// Returns false for a file that cannot be read, which is a notification of the run in SARIF.
fn is_result(rule: FaultKind) -> bool {
    rule != FaultKind::UnreadableInput
}

fn result(diagnostic: &Diagnostic) -> SarifFinding<'_> {
    let (rule, path) = (diagnostic.rule, &*diagnostic.path);
    let subject = diagnostic.subject().unwrap_or_default();
    let full = [subject, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let place = FilePlace { file: &diagnostic.file, position: diagnostic.position() };
    SarifFinding::new(rule.name(), rule.severity(), path, full, diagnostic.message_of_versions(), Some(place))
}
