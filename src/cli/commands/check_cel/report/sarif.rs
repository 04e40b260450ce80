//! Comparisons as SARIF. A union that agrees with its rules is no result.

use crate::cli::commands::check_cel::compared_union::{ComparedUnion, ReportedDisagreement};
use crate::cli::commands::check_cel::comparison::RuleVerdict;
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifLevel, SarifRule, SarifSubject};

/// The verdicts that are results, in the order of the rules.
const RESULTS: [RuleVerdict; 4] =
    [RuleVerdict::TooWeak, RuleVerdict::TooStrong, RuleVerdict::NoRules, RuleVerdict::Undecided];

/// Returns the log of all unions.
pub(super) fn log(compared: &[ComparedUnion<'_>], problems: &[String], code: u8) -> serde_json::Result<String> {
    let rules = RESULTS.into_iter().map(|verdict| {
        let (id, description, level) = rule(verdict);
        SarifRule { id, description, level }
    });
    sarif::log(rules, compared.iter().flat_map(ComparedUnion::findings), problems, code)
}

fn rule(verdict: RuleVerdict) -> (&'static str, &'static str, SarifLevel) {
    match verdict {
        RuleVerdict::Agrees => ("agrees", "The rules and the union say the same.", SarifLevel::Note),
        RuleVerdict::TooWeak => ("too-weak", "The rules allow an object that the union rejects.", SarifLevel::Error),
        RuleVerdict::TooStrong => {
            ("too-strong", "The rules reject an object that the union allows.", SarifLevel::Error)
        }
        RuleVerdict::NoRules => ("no-rules", "No rule is about the union.", SarifLevel::Note),
        RuleVerdict::Undecided => ("undecided", "A rule could not be evaluated.", SarifLevel::Warning),
    }
}

impl<'s> ComparedUnion<'s> {
    fn findings(&self) -> Vec<SarifFinding<'s>> {
        let mut findings: Vec<_> = self.disagreements.iter().map(|it| self.disagreement(it)).collect();
        if self.all.contains(&RuleVerdict::NoRules) {
            findings.push(self.finding(RuleVerdict::NoRules, "no rule is about the union", self.position()));
        }
        let undecided = self.undecided.iter();
        findings.extend(undecided.map(|why| self.finding(RuleVerdict::Undecided, why, self.position())));
        findings
    }

    fn disagreement(&self, it: &ReportedDisagreement) -> SarifFinding<'s> {
        let rule = it.rejected_by.first().and_then(|&at| self.rules.get(at));
        match rule {
            None => {
                let violation = it.violation.as_deref().unwrap_or_default();
                let message = format!("the rules allow {}, which the union rejects: {violation}", it.object);
                self.finding(RuleVerdict::TooWeak, &message, self.position())
            }
            Some(rule) => {
                let message = format!("{} rejects {}, which the union allows", rule.title(), it.object);
                self.finding(RuleVerdict::TooStrong, &message, rule.line.zip(rule.column))
            }
        }
    }

    fn finding(&self, verdict: RuleVerdict, message: &str, position: Option<(usize, usize)>) -> SarifFinding<'s> {
        let (id, _, level) = rule(verdict);
        let path = if self.path.is_empty() { "(the object)" } else { self.path };
        let kind = format!("{}.{}/{}", self.kind, self.group, self.version);
        SarifFinding {
            rule: id,
            level,
            message: format!("{kind} {path}: {message}"),
            place: Some(FilePlace { file: self.file, position }),
            subjects: vec![SarifSubject { field: self.path.to_owned(), full: format!("{kind}/{path}") }],
            related: Vec::new(),
            suppressed: None,
        }
    }

    fn position(&self) -> Option<(usize, usize)> {
        self.line.zip(self.column)
    }
}
