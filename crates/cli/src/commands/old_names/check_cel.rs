//! `check-cel`: a verdict on each union beside the rules of its CRD. `lint` reports those that are no agreement.

use crate::commands::lint::rules::comparison::{ComparedUnion, RuleVerdict};
use crate::commands::lint::rules::reported_rule::LONGEST_RULE;
use crate::commands::lint::rules::{GUARD, RuleFinding, UNREAD, compared, subjects};
use crate::input::kinds::{self, DeclarationArgs};
use crate::input::manifest;
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::Verdict;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::output::{self, Paint};
use crate::report::sarif::{FilePlace, SarifFinding};
use crate::report::{findings, json_list};
use anyhow::anyhow;
use clap::Args;
use kube_unions_core::field_path::Printable;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_offline::HelpPage;
use std::collections::BTreeSet;
use std::fmt::Write;

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
    let rejected = is(RuleVerdict::TooWeak) || is(RuleVerdict::TooStrong);
    let is_nothing = problems.is_empty()
        && compared.iter().all(|union| union.verdicts.iter().all(|verdict| *verdict == RuleVerdict::NoRules));
    let missing = assembly.missing(&paths).filter(|_| problems.is_empty());
    let undecided = || {
        let undecided = is(RuleVerdict::Undecided) && !rejected;
        undecided.then(|| anyhow!("some unions are undecided: rewrite the rules named above, or test them by hand"))
    };
    let sentence = sentence(definitions.len(), &compared);
    let nothing = (is_nothing && missing.is_none()).then(|| format!("nothing to compare: {sentence}"));
    let summary = if missing.is_some() { String::new() } else { sentence };
    let failure = kept_from(problems.len(), "checked").or(missing.map(anyhow::Error::msg)).or_else(undecided);
    let conclusion = Conclusion::new(arguments.require, nothing, rejected, summary).beside(problems, failure);
    output::print_text(findings::report(
        arguments.output,
        Paint::of(&std::io::stdout()),
        &conclusion,
        |paint| compared.iter().map(|union| union.lines(paint)).collect(),
        || json_list::pretty(&compared),
        RuleVerdict::ALL.iter().filter(|verdict| **verdict != RuleVerdict::Agrees).map(|it| (it.row(), HelpPage::LINT)),
        compared.iter().flat_map(|union| union.findings().into_iter().map(|it| union.result(it))),
    )?)?;
    if assembly.catalog.errors() > 0 {
        output::note("some unions were left out because of faults: see `kube-unions lint` with the same files");
    }
    conclusion.end()
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
                RuleVerdict::TooWeak | RuleVerdict::TooStrong | RuleVerdict::Fails => {}
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
                    let (head, title) = (head(rule.line, rule.column), rule.title());
                    let error = paint.error("too strong:");
                    let _ = if it.verdict == RuleVerdict::Fails {
                        writeln!(text, "{head} fails: {title} is not false, so {UNREAD}; {GUARD}")
                    } else if it.fails {
                        writeln!(text, "{head} {error} {title} fails for what the union allows; {GUARD}")
                    } else {
                        writeln!(text, "{head} {error} {title} rejects what the union allows")
                    };
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
