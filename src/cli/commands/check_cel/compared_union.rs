//! A union with its comparison and the places of both, as every report tells it.

use super::comparison::RuleComparison;
use super::subjects::CheckedUnion;
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, EvidenceState};
use serde::Serialize;
use std::path::Path;

/// Longest text of a rule that a line shows, in bytes.
pub(super) const LONGEST_RULE: usize = 160;

/// A union with its comparison, and the place of both in the CRD's file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedUnion<'s> {
    pub(super) file: &'s Path,
    /// The name of the CRD.
    #[serde(skip)]
    pub(super) definition: Option<&'s str>,
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    pub(super) group: &'s str,
    pub(super) kind: &'s str,
    pub(super) version: &'s str,
    /// The path of the object with the union, empty for the root.
    pub(super) path: &'s str,
    pub(super) source: String,
    declaration: Option<&'s str>,
    #[serde(flatten)]
    pub(super) comparison: RuleComparison,
    /// The rules of the comparison, with their places.
    pub(super) rules: Vec<ReportedRule>,
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
    pub(super) fn of(subject: &CheckedUnion<'s>) -> Self {
        let (line, column) = subject.document.position(&subject.place_pointer()).unzip();
        let (kind, union, comparison) = (subject.entry.gvk(), subject.union, RuleComparison::of(subject));
        Self {
            file: &subject.document.file,
            definition: subject.document.name.as_deref(),
            line,
            column,
            group: &kind.group,
            kind: &kind.kind,
            version: &kind.version,
            path: union.path(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            rules: comparison.evidence.iter().map(|evidence| ReportedRule::new(subject, evidence.clone())).collect(),
            comparison,
        }
    }
}

impl ReportedRule {
    fn new(subject: &CheckedUnion<'_>, evidence: Evidence) -> Self {
        let pointer = format!("{}{}", subject.pointer, evidence.position());
        let (line, column) = subject.document.position(&pointer).unzip();
        let (index, keyword) = match evidence.kind {
            EvidenceKind::Rule(index) => (Some(index), None),
            EvidenceKind::Keyword(keyword) => (None, Some(keyword)),
            EvidenceKind::Description => (None, Some("description".to_owned())),
        };
        let (state, why) = match evidence.state {
            EvidenceState::Decides => ("decides", None),
            EvidenceState::Elsewhere => ("elsewhere", None),
            EvidenceState::Transition => ("transition", None),
            EvidenceState::Unreadable(why) => ("unreadable", Some(why)),
            EvidenceState::Beyond(why) => ("beyond", Some(why)),
        };
        let (rule, message) = (index.is_some().then_some(evidence.text), evidence.message);
        Self { pointer, line, column, index, keyword, rule, message, state, why }
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
