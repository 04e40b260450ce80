//! The report as one JSON object: the kinds, the findings, the summary.

use crate::cli::commands::audit::rules::{Impact, ObjectFinding};
use crate::cli::commands::audit::tally::{AuditEnd, Tally};
use kube_unions_core::names::GroupVersionKind;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct KindItem<'k> {
    group: &'k str,
    version: &'k str,
    kind: &'k str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingItem<'f> {
    #[serde(flatten)]
    kind: KindItem<'f>,
    namespace: &'f str,
    name: &'f str,
    finding: &'static str,
    rule: &'static str,
    field: &'f str,
    message: &'f str,
    /// Present for invalid objects only.
    #[serde(skip_serializing_if = "Option::is_none")]
    mended_by_next_write: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'f Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'e> {
    #[serde(flatten)]
    tally: Tally,
    complete: bool,
    not_audited: &'e [String],
}

impl<'k> KindItem<'k> {
    fn of(GroupVersionKind { group, version, kind }: &'k GroupVersionKind) -> Self {
        Self { group, version, kind }
    }
}

/// Returns the text before the first finding.
pub(super) fn head<'k>(kinds: impl Iterator<Item = &'k GroupVersionKind>) -> serde_json::Result<String> {
    let kinds: Vec<KindItem<'_>> = kinds.map(KindItem::of).collect();
    Ok(format!("{{\n  \"kinds\": {},\n  \"findings\": [", serde_json::to_string(&kinds)?))
}

pub(super) fn finding(finding: &ObjectFinding<'_>) -> serde_json::Result<String> {
    let ObjectFinding { rule, kind, namespace, name, field, message, repaired, location } = finding;
    let position = location.and_then(|location| location.position);
    let invalid = rule.impact() == Impact::Invalid;
    let item = FindingItem {
        kind: KindItem::of(kind),
        namespace,
        name,
        finding: rule.impact().key(),
        rule: rule.id(),
        field,
        message,
        mended_by_next_write: invalid.then_some(*repaired),
        file: location.map(|location| location.file),
        line: position.map(|(line, _)| line),
        column: position.map(|(_, column)| column),
    };
    Ok(format!("    {}", serde_json::to_string(&item)?))
}

/// Returns the text after the last finding.
pub(super) fn tail(end: &AuditEnd<'_>, any: bool) -> serde_json::Result<String> {
    let summary = Summary { tally: end.tally, complete: end.problems.is_empty(), not_audited: end.problems };
    let close = if any { "\n  ]" } else { "]" };
    Ok(format!("{close},\n  \"summary\": {}\n}}\n", serde_json::to_string(&summary)?))
}
