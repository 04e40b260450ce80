//! The report as one JSON object: the kinds, the findings, the summary.

use super::End;
use crate::cli::audit::finding::{Finding, Sort};
use crate::cli::audit::tally::Tally;
use kube_unions_core::names::GroupVersionKind;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Audited<'k> {
    group: &'k str,
    version: &'k str,
    kind: &'k str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'f> {
    #[serde(flatten)]
    kind: Audited<'f>,
    namespace: &'f str,
    name: &'f str,
    finding: &'static str,
    rule: &'static str,
    field: &'f str,
    message: &'f str,
    /// Of invalid objects only.
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

impl<'k> Audited<'k> {
    fn of(GroupVersionKind { group, version, kind }: &'k GroupVersionKind) -> Self {
        Self { group, version, kind }
    }
}

/// Everything before the first finding.
pub(super) fn head<'k>(kinds: impl Iterator<Item = &'k GroupVersionKind>) -> serde_json::Result<String> {
    let kinds: Vec<Audited<'_>> = kinds.map(Audited::of).collect();
    Ok(format!("{{\n  \"kinds\": {},\n  \"findings\": [", serde_json::to_string(&kinds)?))
}

pub(super) fn finding(finding: &Finding<'_>) -> serde_json::Result<String> {
    let Finding { rule, kind, namespace, name, field, message, mended, place } = finding;
    let position = place.and_then(|place| place.position);
    let invalid = rule.sort == Sort::Invalid;
    let item = Item {
        kind: Audited::of(kind),
        namespace,
        name,
        finding: rule.sort.key(),
        rule: rule.id,
        field,
        message,
        mended_by_next_write: invalid.then_some(*mended),
        file: place.map(|place| place.file),
        line: position.map(|(line, _)| line),
        column: position.map(|(_, column)| column),
    };
    Ok(format!("    {}", serde_json::to_string(&item)?))
}

/// Everything behind the last finding.
pub(super) fn tail(end: &End<'_>, any: bool) -> serde_json::Result<String> {
    let summary = Summary { tally: end.tally, complete: end.troubles.is_empty(), not_audited: end.troubles };
    let close = if any { "\n  ]" } else { "]" };
    Ok(format!("{close},\n  \"summary\": {}\n}}\n", serde_json::to_string(&summary)?))
}
