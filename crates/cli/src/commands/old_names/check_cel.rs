//! `check-cel`: a verdict on each union beside the rules of its CRD. `lint` reports those that are no agreement.

use crate::commands::lint::rules::comparison::{ComparedUnion, LONGEST_RULE, RuleVerdict};
use crate::commands::lint::rules::{RuleFinding, compared, subjects};
use crate::input::kinds::{self, DeclarationArgs};
use crate::input::manifest;
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::Verdict;
use crate::report::exit::FAILED;
use crate::report::output::{self, Paint};
use crate::report::sarif::{self, FilePlace, SarifFinding, SarifRule};
use anyhow::bail;
use clap::Args;
use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::Printable;
use kube_unions_manifests::counts::{count, grouped};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Arguments of `check-cel`.
#[derive(Debug, Args)]
pub(crate) struct CheckCelArgs {
    #[command(flatten)]
    declarations: DeclarationArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
    #[command(flatten)]
    require: RequireArg,
}

pub(super) fn run(arguments: &CheckCelArgs) -> anyhow::Result<Verdict> {
    let paths = arguments.declarations.paths();
    let manifests = manifest::files(&paths);
    let assembly = kinds::assemble(manifests.documents().collect(), arguments.declarations.sources.builtin_unions);
    for problem in manifests.problems.iter().chain(&assembly.problems) {
        output::note(problem);
    }
    let problems: Vec<String> = manifests.problems.iter().chain(&assembly.problems).map(ToString::to_string).collect();

    let definitions = subjects::definitions(&assembly);
    let compared = compared(&assembly, &definitions);
    let is = |wanted: RuleVerdict| compared.iter().any(|union| union.verdicts.contains(&wanted));
    let disagrees = is(RuleVerdict::TooWeak) || is(RuleVerdict::TooStrong);
    let nothing = problems.is_empty()
        && compared.iter().all(|union| union.verdicts.iter().all(|verdict| *verdict == RuleVerdict::NoRules));
    let code = match problems.is_empty() {
        true if disagrees => Verdict::Rejected.code(),
        true if nothing => arguments.require.verdict().code(),
        true if !is(RuleVerdict::Undecided) => Verdict::Accepted.code(),
        _ => FAILED,
    };
    print(&compared, arguments.output, &problems, code)?;

    let faults = assembly.catalog.faults().iter().filter(|fault| fault.severity() == Severity::Error).count();
    if faults > 0 {
        output::note("some unions were left out because of faults: see `kube-unions lint` with the same files");
    }
    if let Some(missing) = assembly.missing(&paths)
        && problems.is_empty()
    {
        bail!(missing);
    }
    let sentence = sentence(definitions.len(), &compared);
    if nothing {
        return Ok(arguments.require.warn(format_args!("nothing to compare: {sentence}")));
    }
    output::note(sentence);
    match problems.len() {
        0 if disagrees => Ok(Verdict::Rejected),
        0 if is(RuleVerdict::Undecided) => {
            bail!("some unions are undecided: rewrite the rules named above, or test them by hand")
        }
        0 => Ok(Verdict::Accepted),
        some => bail!("{} kept something from being checked", count(some, "problem")),
    }
}

/// Returns the summary, for example `3 CRDs, 5 unions: 4 agree, 1 too weak`.
fn sentence(definitions: usize, compared: &[ComparedUnion<'_>]) -> String {
    let all: BTreeSet<RuleVerdict> = compared.iter().flat_map(|union| union.verdicts.iter().copied()).collect();
    let counts = all.into_iter().map(|verdict| {
        let number = compared.iter().filter(|union| union.verdicts.contains(&verdict)).count();
        let words = if verdict == RuleVerdict::Agrees && number != 1 { "agree".to_owned() } else { verdict.words() };
        format!("{} {words}", grouped(number))
    });
    let counts: Vec<String> = counts.collect();
    let colon = if counts.is_empty() { "" } else { ": " };
    format!("{}, {}{colon}{}", count(definitions, "CRD"), count(compared.len(), "union"), counts.join(", "))
}

/// Prints the comparisons. `problems` kept something from being checked, and `code` is the exit code.
fn print(compared: &[ComparedUnion<'_>], format: FindingsFormat, problems: &[String], code: u8) -> anyhow::Result<()> {
    let text = match format {
        FindingsFormat::Text => {
            let paint = Paint::of(&std::io::stdout());
            compared.iter().map(|union| union.lines(paint)).collect()
        }
        FindingsFormat::Json => serde_json::to_string_pretty(compared)? + "\n",
        FindingsFormat::Sarif => {
            let results = compared.iter().flat_map(|union| union.findings().into_iter().map(|it| union.result(it)));
            let verdicts = RuleVerdict::ALL.iter().filter(|verdict| **verdict != RuleVerdict::Agrees);
            let rules = verdicts.map(|it| SarifRule { id: it.name(), description: it.meaning(), level: it.severity() });
            sarif::log(rules, results, problems, code)?
        }
    };
    output::print_text(text)
}

impl<'s> ComparedUnion<'s> {
    fn lines(&self, paint: Paint) -> String {
        let head = |line: Option<usize>, column: Option<usize>| {
            let place = FilePlace { file: self.file, position: line.zip(column) };
            let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
            let place = paint.strong(&format!("{place}:"));
            output::line(&format!("{place} {}{group}/{} {}:", self.kind, self.version, self.shown_path())).into_owned()
        };
        let whole = head(self.line, self.column);
        let mut text = String::new();
        for verdict in &self.verdicts {
            match verdict {
                RuleVerdict::Agrees if self.requires_member => {
                    let _ = writeln!(text, "{whole} agrees, and the rules require a member");
                }
                RuleVerdict::Agrees | RuleVerdict::NoRules => {
                    let _ = writeln!(text, "{whole} {}", verdict.words());
                }
                RuleVerdict::TooWeak | RuleVerdict::TooStrong => {}
                RuleVerdict::Undecided => {
                    for why in &self.undecided {
                        let _ = writeln!(text, "{whole} {} {why}", paint.warning("undecided:"));
                    }
                }
            }
        }
        for it in &self.disagreements {
            match self.rejecting_rule(it) {
                None => {
                    let violation = output::line(it.violation.as_deref().unwrap_or_default());
                    let error = paint.error("too weak:");
                    let _ = writeln!(text, "{whole} {error} the rules allow what the union rejects: {violation}");
                }
                Some(rule) => {
                    let error = paint.error("too strong:");
                    let head = head(rule.line, rule.column);
                    let _ = writeln!(text, "{head} {error} {} rejects what the union allows", rule.title());
                }
            }
            let also: Vec<String> =
                it.also.iter().map(|value| format!("{:?}", Printable::new(value, LONGEST_RULE).to_string())).collect();
            let also = if also.is_empty() { String::new() } else { format!("  (also with {})", also.join(", ")) };
            let _ = writeln!(text, "    {}{also}", it.object);
        }
        if !self.disagreements.is_empty() {
            for why in &self.undecided {
                let _ = writeln!(text, "{whole} {} also {why}", paint.warning("undecided:"));
            }
        }
        text
    }

    fn shown_path(&self) -> &'s str {
        if self.path.is_empty() { "(the object)" } else { self.path }
    }

    fn result(&self, (verdict, message, position): RuleFinding) -> SarifFinding<'s> {
        let (kind, path) = (format!("{}.{}/{}", self.kind, self.group, self.version), self.shown_path());
        let (full, place) = (format!("{kind}/{path}"), FilePlace { file: self.file, position });
        let found = SarifFinding::new(verdict.name(), verdict.severity(), self.path, full, String::new(), Some(place));
        SarifFinding { message: format!("{kind} {path}: {message}"), ..found }
    }
}
