//! Prints comparisons as lines for people, as JSON and as SARIF.

mod sarif;

use super::comparison::{RuleComparison, RuleDisagreement, RuleVerdict};
use super::subjects::CheckedUnion;
use crate::cli::output::{self, Paint};
use crate::cli::values::FindingsFormat;
use kube_unions_core::field_path::Printable;
use kube_unions_evidence::{Evidence, EvidenceKind, EvidenceState};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Longest text of a rule that a line shows, in bytes.
const LONGEST_RULE: usize = 160;

/// A union with its comparison, and the place of both in the CRD's file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedUnion<'s> {
    file: &'s Path,
    line: Option<usize>,
    column: Option<usize>,
    group: &'s str,
    kind: &'s str,
    version: &'s str,
    /// The path of the object with the union, empty for the root.
    path: &'s str,
    source: String,
    declaration: Option<&'s str>,
    verdicts: Vec<&'static str>,
    disagreements: Vec<ReportedDisagreement>,
    undecided: BTreeSet<String>,
    /// True if the rules require a member, which the union does not say.
    requires_member: bool,
    rules: Vec<ReportedRule>,
    #[serde(skip)]
    all: BTreeSet<RuleVerdict>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedDisagreement {
    verdict: &'static str,
    object: Value,
    violation: Option<String>,
    /// The positions of the rules that reject the object in `rules`.
    rejected_by: Vec<usize>,
    /// The other values of the discriminator with which the same members disagree.
    also: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedRule {
    /// The JSON Pointer of the rule in the CRD.
    pointer: String,
    line: Option<usize>,
    column: Option<usize>,
    /// The position among the rules of its object, counted from 0. `None` for a keyword.
    index: Option<usize>,
    /// `oneOf` for example, for a validation that is not a rule.
    keyword: Option<String>,
    rule: Option<String>,
    message: Option<String>,
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

    fn lines(&self, paint: Paint) -> String {
        let head = |line: Option<usize>, column: Option<usize>| {
            let position = [line, column].into_iter().flatten().map(|number| number.to_string());
            let place: Vec<String> = [self.file.display().to_string()].into_iter().chain(position).collect();
            let path = if self.path.is_empty() { "(the object)" } else { self.path };
            let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
            format!("{} {}{group}/{} {path}:", paint.strong(&format!("{}:", place.join(":"))), self.kind, self.version)
        };
        let whole = head(self.line, self.column);
        let mut text = String::new();
        for verdict in &self.all {
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
            let rules: Vec<&ReportedRule> = it.rejected_by.iter().filter_map(|&at| self.rules.get(at)).collect();
            match rules.first() {
                None => {
                    let violation = it.violation.as_deref().unwrap_or_default();
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
    fn title(&self) -> String {
        let text = self.message.as_deref().or(self.rule.as_deref()).unwrap_or_default();
        match (&self.keyword, self.index) {
            (Some(keyword), _) => format!("`{keyword}`"),
            (None, Some(index)) => format!("rule {index} ({})", Printable::new(text, LONGEST_RULE)),
            (None, None) => "a rule".to_owned(),
        }
    }
}

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
        FindingsFormat::Sarif => sarif::log(compared, problems, code)?,
    };
    output::tell(text)
}
