//! The report as one JSON object: the kinds, the findings, the summary.

use crate::cli::commands::audit::rules::{Impact, ObjectFinding};
use crate::cli::commands::audit::tally::AuditEnd;
use crate::cli::report::json_list::{JsonList, present};
use kube_unions_core::names::GroupVersionKind;
use serde_json::{Value, json};

/// Begins the report.
pub(super) fn list<'k>(kinds: impl Iterator<Item = &'k GroupVersionKind>) -> JsonList {
    let kinds = kinds
        .map(|GroupVersionKind { group, version, kind }| json!({"group": group, "version": version, "kind": kind}))
        .collect::<Value>();
    JsonList::begin(format!("{{\n  \"kinds\": {kinds},\n  \"findings\": ["), "  ")
}

pub(super) fn finding(finding: &ObjectFinding<'_>) -> Value {
    let ObjectFinding { rule, kind, namespace, name, field, message, repaired, location } = finding;
    let (line, column) = location.and_then(|location| location.position).unzip();
    let is_invalid = rule.impact() == Impact::Invalid;
    present(json!({
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "namespace": namespace,
        "name": name,
        "finding": rule.impact().key(),
        "rule": rule.id(),
        "field": field,
        "message": message,
        "mendedByNextWrite": is_invalid.then_some(repaired),
        "file": location.map(|location| location.file.display().to_string()),
        "line": line,
        "column": column,
    }))
}

/// Returns the text after the list of findings.
pub(super) fn rest(end: &AuditEnd<'_>) -> serde_json::Result<String> {
    let mut summary = serde_json::to_value(end.tally)?;
    if let Some(members) = summary.as_object_mut() {
        members.insert("complete".to_owned(), end.problems.is_empty().into());
        members.insert("notAudited".to_owned(), end.problems.into());
    }
    Ok(format!(",\n  \"summary\": {summary}\n}}\n"))
}
