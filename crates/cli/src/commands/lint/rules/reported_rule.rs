//! A rule or keyword beside a union, as reports tell it.

use super::subjects::CheckedUnion;
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, EvidenceState};
use serde::Serialize;

/// Longest text of a rule that a line shows, in bytes.
pub(crate) const LONGEST_RULE: usize = 160;

/// A rule with its place, as reports tell it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportedRule {
    /// The JSON Pointer of the rule in the CRD.
    pointer: String,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    /// The position among the rules of its object, counted from 0. `None` for a keyword.
    pub(crate) index: Option<usize>,
    /// `oneOf` for example, for a validation that is not a rule.
    pub(crate) keyword: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) message: Option<String>,
    /// `decides`, `elsewhere`, `transition`, `unreadable` or `beyond`.
    state: &'static str,
    why: Option<String>,
}

impl ReportedRule {
    pub(super) fn new(subject: &CheckedUnion<'_>, evidence: Evidence) -> Self {
        let pointer = format!("{}{}", subject.pointer, evidence.position());
        let (line, column) = subject.document.position(&pointer).unzip();
        let (index, keyword) = match evidence.kind {
            EvidenceKind::Rule(index) => (Some(index), None),
            EvidenceKind::Keyword(keyword) => (None, Some(keyword)),
            EvidenceKind::Description => (None, Some("description".to_owned())),
            EvidenceKind::Shape => (None, Some("shape".to_owned())),
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
    pub(crate) fn title(&self) -> String {
        let text = self.message.as_deref().or(self.rule.as_deref()).unwrap_or_default();
        match (&self.keyword, self.index) {
            (Some(keyword), _) => format!("`{keyword}`"),
            (None, Some(index)) => format!("rule {index} ({})", Printable::new(text, LONGEST_RULE)),
            (None, None) => "a rule".to_owned(),
        }
    }
}
