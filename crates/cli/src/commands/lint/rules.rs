//! Compares unions with the rules that somebody wrote by hand in the same CRD.
//!
//! [`comparison`] compares one union, and [`subjects`] finds the unions and their schemas. The crate `kube-unions-evidence` evaluates the
//! rules.

pub(crate) mod comparison;
pub(crate) mod reported_rule;
pub(crate) mod subjects;
mod union_verdict;

use self::comparison::{ComparedUnion, RuleDisagreement, RuleVerdict};
use self::reported_rule::ReportedRule;
use self::subjects::ReadDefinition;
use crate::input::kinds::Assembly;
use crate::input::manifest::Problem;
use crate::report::diagnostic::Diagnostic;
use kube_unions_core::declaration::FaultKind;

/// The remedy of a rule that fails.
pub(crate) const GUARD: &str = "ask `has()` before it reads a field, and `size()` before an index";

/// Why a rule that fails matters, though the object has to be rejected.
pub(crate) const UNREAD: &str = "the API server shows an error in place of its message";

/// A verdict that is no agreement, the reason, and its line and column.
pub(crate) type RuleFinding = (RuleVerdict, String, Option<(usize, usize)>);

/// Returns what `lint` reports about the rules beside unions. Versions that disagree alike have one diagnostic.
pub(super) fn diagnostics(assembly: &Assembly, definitions: &[ReadDefinition<'_>]) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = Vec::new();
    for found in compared(assembly, definitions).iter().flat_map(ComparedUnion::diagnostics) {
        let is_alike = |it: &&mut Diagnostic| {
            (&it.definition, &it.path, it.rule, &it.message)
                == (&found.definition, &found.path, found.rule, &found.message)
        };
        match all.iter_mut().find(is_alike) {
            Some(known) => known.versions.extend(found.versions),
            None => all.push(found),
        }
    }
    all
}

/// Compares the unions of an assembly whose CRDs are among its documents.
pub(crate) fn compared<'s>(assembly: &'s Assembly, definitions: &'s [ReadDefinition<'s>]) -> Vec<ComparedUnion<'s>> {
    subjects::of(&assembly.catalog, definitions).map(|subject| ComparedUnion::of(&subject)).collect()
}

impl ComparedUnion<'_> {
    /// Returns the first rule that rejects the object of a disagreement. `None`: the rules are too weak.
    pub(crate) fn rejecting_rule(&self, it: &RuleDisagreement) -> Option<&ReportedRule> {
        it.rejected_by.iter().find_map(|&at| self.rules.get(at))
    }

    /// Returns what `lint` reports: nothing of a union that no rule is about.
    fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        self.findings().into_iter().filter_map(|(verdict, message, position)| {
            let rule = match verdict {
                RuleVerdict::TooWeak => FaultKind::RulesTooWeak,
                RuleVerdict::TooStrong => FaultKind::RulesTooStrong,
                RuleVerdict::Undecided => FaultKind::RulesUndecided,
                RuleVerdict::Fails => FaultKind::RulesFail,
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
    pub(crate) fn findings(&self) -> Vec<RuleFinding> {
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
                let (title, object) = (rule.title(), &it.object);
                let message = if it.verdict == RuleVerdict::Fails {
                    format!("{title} fails for {object} and is not false, so {UNREAD}; {GUARD}")
                } else if it.fails {
                    format!("{title} fails for {object}, which the union allows; {GUARD}")
                } else {
                    format!("{title} rejects {object}, which the union allows")
                };
                (it.verdict, message, rule.line.zip(rule.column))
            }
        }
    }
}
