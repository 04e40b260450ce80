//! A union with its comparison and the places of both, as every report tells it.

use super::comparison::{RuleComparison, RuleDisagreement, RuleVerdict};
use super::subjects::CheckedUnion;
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, EvidenceState};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Longest text of a rule that a line shows, in bytes.
pub(super) const LONGEST_RULE: usize = 160;

/// A union with its comparison, and the place of both in the CRD's file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedUnion<'s> {
    pub(super) file: &'s Path,
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    pub(super) group: &'s str,
    pub(super) kind: &'s str,
    pub(super) version: &'s str,
    /// The path of the object with the union, empty for the root.
    pub(super) path: &'s str,
    source: String,
    declaration: Option<&'s str>,
    verdicts: Vec<&'static str>,
    pub(super) disagreements: Vec<ReportedDisagreement>,
    pub(super) undecided: BTreeSet<String>,
    /// True if the rules require a member, which the union does not say.
    pub(super) requires_member: bool,
    pub(super) rules: Vec<ReportedRule>,
    #[serde(skip)]
    pub(super) all: BTreeSet<RuleVerdict>,
}

/// A disagreement, as reports tell it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedDisagreement {
    verdict: &'static str,
    pub(super) object: Value,
    pub(super) violation: Option<String>,
    /// The positions of the rules that reject the object in `rules`.
    pub(super) rejected_by: Vec<usize>,
    /// The other values of the discriminator with which the same members disagree.
    pub(super) also: Vec<String>,
}

/// A rule with its place, as reports tell it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedRule {
    /// The JSON Pointer of the rule in the CRD.
    pointer: String,
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    /// The position among the rules of its object, counted from 0. `None` for a keyword.
    pub(super) index: Option<usize>,
    /// `oneOf` for example, for a validation that is not a rule.
    pub(super) keyword: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) message: Option<String>,
    /// `decides`, `elsewhere`, `transition`, `unreadable` or `beyond`.
    state: &'static str,
    why: Option<String>,
}

impl<'s> ComparedUnion<'s> {
    pub(super) fn new(subject: &CheckedUnion<'s>, comparison: RuleComparison) -> Self {
        let position = subject.document.position(&subject.place_pointer());
        let (kind, union) = (subject.entry.gvk(), subject.union);
        let rules = comparison.evidence.into_iter().map(|evidence| ReportedRule::new(subject, evidence));
        Self {
            file: &subject.document.file,
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            group: &kind.group,
            kind: &kind.kind,
            version: &kind.version,
            path: union.path(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            verdicts: comparison.verdicts.iter().map(|verdict| verdict.key()).collect(),
            disagreements: comparison.disagreements.into_iter().map(ReportedDisagreement::new).collect(),
            undecided: comparison.undecided,
            requires_member: comparison.requires_member,
            rules: rules.collect(),
            all: comparison.verdicts,
        }
    }

    pub(super) fn verdicts(&self) -> &BTreeSet<RuleVerdict> {
        &self.all
    }
}

impl ReportedDisagreement {
    fn new(found: RuleDisagreement) -> Self {
        let RuleDisagreement { verdict, object, violation, by, also, .. } = found;
        Self { verdict: verdict.key(), object, violation, rejected_by: by, also }
    }
}

impl ReportedRule {
    fn new(subject: &CheckedUnion<'_>, evidence: Evidence) -> Self {
        let pointer = format!("{}{}", subject.pointer, evidence.position());
        let position = subject.document.position(&pointer);
        let (index, keyword) = match evidence.kind {
            EvidenceKind::Rule(index) => (Some(index), None),
            EvidenceKind::Keyword(keyword) => (None, Some(keyword)),
        };
        let (state, why) = match evidence.state {
            EvidenceState::Decides => ("decides", None),
            EvidenceState::Elsewhere => ("elsewhere", None),
            EvidenceState::Transition => ("transition", None),
            EvidenceState::Unreadable(why) => ("unreadable", Some(why)),
            EvidenceState::Beyond(why) => ("beyond", Some(why)),
        };
        Self {
            pointer,
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            index,
            keyword,
            rule: index.is_some().then_some(evidence.text),
            message: evidence.message,
            state,
            why,
        }
    }

    /// Names the rule in a line.
    pub(super) fn title(&self) -> String {
        let text = self.message.as_deref().or(self.rule.as_deref()).unwrap_or_default();
        match (&self.keyword, self.index) {
            (Some(keyword), _) => format!("`{keyword}`"),
            (None, Some(index)) => format!("rule {index} ({})", Printable::new(text, LONGEST_RULE)),
            (None, None) => "a rule".to_owned(),
        }
    }
}
