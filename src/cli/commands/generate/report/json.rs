//! The report as JSON, with every finding.

use super::{Report, ReportedKind};
use crate::cli::commands::generate::baseline::BaselineEntry;
use crate::cli::commands::generate::finding::ReportedFinding;
use crate::cli::report::tree::ChoiceItem;
use kube_unions_go::{FindingSeverity, FoundBy, GoFinding, MarkedUnion, Position};
use kube_unions_manifests::union_details;
use serde::Serialize;
use std::path::Path;

impl Report {
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let report = WireReport {
            kinds: self.kinds.iter().map(WireKind::of).collect(),
            findings: self.findings.iter().map(WireFinding::of).collect(),
            stale_baseline_entries: &self.stale,
        };
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }
}

/// Returns the choices of a union.
pub(super) fn leaves(union: &MarkedUnion) -> impl Iterator<Item = ChoiceItem<'_>> + Clone {
    union.choices.iter().map(|(value, selected)| ChoiceItem {
        value,
        member: selected.as_ref().map(|selected| &*selected.name),
        optional: selected.as_ref().is_some_and(|selected| selected.optional),
        evidence: selected.as_ref().filter(|selected| selected.by_rule).map(|_| "rule"),
    })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireReport<'r> {
    kinds: Vec<WireKind<'r>>,
    findings: Vec<WireFinding<'r>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stale_baseline_entries: &'r [BaselineEntry],
}

#[derive(Debug, Serialize)]
struct WireKind<'r> {
    group: &'r str,
    version: &'r str,
    kind: &'r str,
    definition: &'r str,
    #[serde(flatten)]
    source: WirePosition<'r>,
    unions: Vec<WireUnion<'r>>,
}

#[derive(Debug, Serialize)]
struct WirePosition<'r> {
    file: &'r Path,
    line: usize,
    column: usize,
}

#[derive(Debug, Serialize)]
struct WireUnion<'r> {
    path: String,
    form: &'static str,
    discriminator: Option<&'r str>,
    members: Vec<&'r str>,
    choices: Vec<ChoiceItem<'r>>,
    /// The way in which the members were found.
    evidence: FoundBy,
    #[serde(rename = "type")]
    go_type: &'r str,
    #[serde(flatten)]
    source: WirePosition<'r>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireFinding<'r> {
    #[serde(flatten)]
    position: WirePosition<'r>,
    definition: Option<&'r str>,
    /// The file with the CRD, and its position there.
    definition_file: Option<&'r Path>,
    definition_line: Option<usize>,
    version: Option<&'r str>,
    path: &'r str,
    severity: FindingSeverity,
    rule: &'static str,
    /// `new`, `allowed` by `--allow`, or `known` from the baseline.
    standing: &'static str,
    message: &'r str,
}

impl<'r> WirePosition<'r> {
    fn of(position: &'r Position) -> Self {
        Self { file: &position.file, line: position.line, column: position.column }
    }
}

impl<'r> WireKind<'r> {
    fn of(kind: &'r ReportedKind) -> Self {
        Self {
            group: &kind.group,
            version: &kind.version,
            kind: &kind.kind,
            definition: &kind.definition,
            source: WirePosition::of(&kind.source),
            unions: kind.derivation.unions.iter().map(WireUnion::of).collect(),
        }
    }
}

impl<'r> WireUnion<'r> {
    fn of(union: &'r MarkedUnion) -> Self {
        Self {
            path: union.place.to_string(),
            form: union_details::form(union.form),
            discriminator: union.discriminator.as_deref(),
            members: union.members(),
            choices: leaves(union).collect(),
            evidence: union.found_by,
            go_type: &union.go_type,
            source: WirePosition::of(&union.source),
        }
    }
}

impl<'r> WireFinding<'r> {
    fn of(reported: &'r ReportedFinding) -> Self {
        let GoFinding { position, path, severity, kind, message } = &reported.finding;
        let subject = reported.subject.as_ref();
        Self {
            position: WirePosition::of(position),
            definition: subject.map(|subject| subject.definition.as_str()),
            definition_file: subject.map(|subject| subject.file.as_path()),
            definition_line: subject.map(|subject| subject.position.0),
            version: subject.and_then(|subject| subject.version.as_deref()),
            path,
            severity: *severity,
            rule: kind.name(),
            standing: reported.standing.key(),
            message,
        }
    }
}
