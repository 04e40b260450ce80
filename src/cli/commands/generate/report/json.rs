//! The report for programs: JSON with every finding, or SARIF, in which findings that are allowed or known are suppressed results.

use super::{Report, ReportedKind};
use crate::cli::commands::generate::finding::{ReportedFinding, Standing};
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifRule};
use crate::cli::report::tree::{ChoiceItem, MemberItem};
use kube_unions_go::{FindingKind, GoFinding, MarkedUnion, Position};
use kube_unions_manifests::union_details;
use serde_json::{Value, json};

impl Report {
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let kinds: Vec<Value> = self.kinds.iter().map(kind).collect();
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        let mut report = json!({"kinds": kinds, "findings": findings});
        if let (Some(members), false) = (report.as_object_mut(), self.stale.is_empty()) {
            members.insert("staleBaselineEntries".to_owned(), serde_json::to_value(&self.stale)?);
        }
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }
}

/// Returns the choices of a union.
pub(super) fn leaves(union: &MarkedUnion) -> impl Iterator<Item = ChoiceItem<'_>> + Clone {
    union.choices.iter().map(|(value, selected)| {
        let member = selected.iter().map(|selected| MemberItem {
            name: &selected.name,
            optional: selected.optional,
            evidence: selected.by_rule.then_some("rule"),
        });
        ChoiceItem { value, members: member.collect() }
    })
}

fn kind(kind: &ReportedKind) -> Value {
    let ReportedKind { group, version, kind, definition, source, derivation } = kind;
    let Position { file, line, column } = source;
    json!({
        "group": group,
        "version": version,
        "kind": kind,
        "definition": definition,
        "file": file.display().to_string(),
        "line": line,
        "column": column,
        "unions": derivation.unions.iter().map(union).collect::<Vec<_>>(),
    })
}

fn union(union: &MarkedUnion) -> Value {
    let Position { file, line, column } = &union.source;
    json!({
        "path": union.place.to_string(),
        "form": union_details::form(union.form),
        "discriminator": union.discriminator,
        "members": union.members(),
        "choices": leaves(union).collect::<Vec<_>>(),
        "required": union.required,
        "emptyIsUnset": union.empty_is_unset,
        // The way in which the members were found.
        "evidence": union.found_by,
        "type": union.go_type,
        "file": file.display().to_string(),
        "line": line,
        "column": column,
    })
}

fn finding(reported: &ReportedFinding) -> Value {
    let GoFinding { position: Position { file, line, column }, path, severity, kind, message } = &reported.finding;
    let subject = reported.subject.as_ref();
    json!({
        "file": file.display().to_string(),
        "line": line,
        "column": column,
        "definition": subject.map(|subject| &subject.definition),
        // The file with the CRD, and its position there.
        "definitionFile": subject.map(|subject| subject.file.display().to_string()),
        "definitionLine": subject.map(|subject| subject.position.0),
        "version": subject.and_then(|subject| subject.version.as_deref()),
        "path": path,
        "severity": severity.name(),
        "rule": kind.name(),
        // `new`, `allowed` by `--allow`, or `known` from the baseline.
        "standing": reported.standing,
        "message": message,
    })
}

impl Report {
    pub(super) fn sarif(&self, problems: &[String], code: u8) -> serde_json::Result<String> {
        let rules = FindingKind::ALL.iter().map(|kind| SarifRule {
            id: kind.name(),
            description: kind.meaning(),
            level: kind.severity(),
        });
        sarif::log(rules, self.findings.iter().map(result), problems, code)
    }
}

fn result(reported: &ReportedFinding) -> SarifFinding<'_> {
    let finding = &reported.finding;
    let (rule, message, position) = (finding.kind.name(), finding.message.clone(), &finding.position);
    let place = FilePlace { file: &position.file, position: Some((position.line, position.column)) };
    let crd = reported.subject.iter().filter(|subject| *subject.file != *position.file);
    let related = crd.map(|subject| {
        let place = FilePlace { file: &subject.file, position: Some(subject.position) };
        (place, format!("The CRD {}", subject.definition))
    });
    SarifFinding {
        related: related.collect(),
        suppressed: match reported.standing {
            Standing::New => None,
            Standing::Allowed => Some("allowed by --allow"),
            Standing::Known => Some("in the baseline"),
        },
        ..SarifFinding::new(rule, finding.severity, &finding.path, reported.place(), message, Some(place))
    }
}
