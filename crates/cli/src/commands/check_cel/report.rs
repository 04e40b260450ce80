//! Prints comparisons as lines for people, as JSON and as SARIF. A union that agrees with its rules is no result of SARIF.

use super::comparison::{ComparedUnion, LONGEST_RULE, ReportedRule, RuleDisagreement, RuleVerdict};
use crate::input::manifest::Problem;
use crate::input::values::FindingsFormat;
use crate::report::diagnostic::Diagnostic;
use crate::report::output::{self, Paint};
use crate::report::sarif::{self, FilePlace, SarifFinding, SarifRule};
use kube_unions_core::declaration::FaultKind;
use kube_unions_core::field_path::Printable;
use std::fmt::Write;

/// A verdict that is no agreement, the reason, and its line and column.
type RuleFinding = (RuleVerdict, String, Option<(usize, usize)>);

/// Prints the comparisons. `problems` kept something from being checked, and `code` is the exit code.
pub(super) fn print(
    compared: &[ComparedUnion<'_>],
    format: FindingsFormat,
    problems: &[String],
    code: u8,
) -> anyhow::Result<()> {
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

    /// Returns the first rule that rejects the object of a disagreement. `None`: the rules are too weak.
    fn rejecting_rule(&self, it: &RuleDisagreement) -> Option<&ReportedRule> {
        it.rejected_by.iter().find_map(|&at| self.rules.get(at))
    }

    fn shown_path(&self) -> &'s str {
        if self.path.is_empty() { "(the object)" } else { self.path }
    }

    /// Returns what `lint` reports: nothing of a union that no rule is about.
    pub(super) fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        self.findings().into_iter().filter_map(|(verdict, message, position)| {
            let rule = match verdict {
                RuleVerdict::TooWeak => FaultKind::RulesTooWeak,
                RuleVerdict::TooStrong => FaultKind::RulesTooStrong,
                RuleVerdict::Undecided => FaultKind::RulesUndecided,
                RuleVerdict::Agrees | RuleVerdict::NoRules => return None,
            };
            let found = Diagnostic::of_input(Problem { file: self.file.to_owned(), position, message }, rule);
            Some(Diagnostic {
                definition: self.definition.map(str::to_owned),
                versions: vec![self.version.to_owned()],
                path: self.path.to_owned(),
                source: Some(self.source.clone()),
                ..found
            })
        })
    }

    /// Returns what keeps the rules from agreeing with the union.
    fn findings(&self) -> Vec<RuleFinding> {
        let position = self.line.zip(self.column);
        let mut findings: Vec<_> = self.disagreements.iter().map(|it| self.disagreement(it)).collect();
        if self.verdicts.contains(&RuleVerdict::NoRules) {
            findings.push((RuleVerdict::NoRules, "no rule is about the union".to_owned(), position));
        }
        let undecided = self.undecided.iter();
        findings.extend(undecided.map(|why| (RuleVerdict::Undecided, why.clone(), position)));
        findings
    }

    fn disagreement(&self, it: &RuleDisagreement) -> RuleFinding {
        match self.rejecting_rule(it) {
            None => {
                let violation = it.violation.as_deref().unwrap_or_default();
                let message = format!("the rules allow {}, which the union rejects: {violation}", it.object);
                (RuleVerdict::TooWeak, message, self.line.zip(self.column))
            }
            Some(rule) => {
                let message = format!("{} rejects {}, which the union allows", rule.title(), it.object);
                (RuleVerdict::TooStrong, message, rule.line.zip(rule.column))
            }
        }
    }

    fn result(&self, (verdict, message, position): RuleFinding) -> SarifFinding<'s> {
        let (kind, path) = (format!("{}.{}/{}", self.kind, self.group, self.version), self.shown_path());
        let (full, place) = (format!("{kind}/{path}"), FilePlace { file: self.file, position });
        let found = SarifFinding::new(verdict.name(), verdict.severity(), self.path, full, String::new(), Some(place));
        SarifFinding { message: format!("{kind} {path}: {message}"), ..found }
    }
}
