//! The output of an audit as a table, JSON or SARIF. Every format is written while findings come in, through a bounded buffer.

mod table;

use super::AuditFormat;
use super::rules::{PlacedFinding, explained};
use crate::report::conclusion::Conclusion;
use crate::report::json_list::JsonList;
use crate::report::output;
use crate::report::sarif::SarifLog;
use indicatif::ProgressBar;
use kube_unions_command::json::present;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_webhook::audit::finding::{AuditRule, Impact, ObjectFinding};
use kube_unions_webhook::audit::tally::Tally;
use serde_json::{Value, json};
use table::Table;

/// The report is written when this many bytes are buffered.
const FULL: usize = 1 << 16;

/// A report that is being written.
pub(super) enum AuditReport {
    Table(Table),
    /// One JSON object: the kinds, the findings, the summary.
    Json(JsonList),
    Sarif(SarifLog),
}

impl AuditReport {
    /// Begins the report of an audit of these kinds. `in_files` adds the places of fields in files.
    pub(super) fn open<'k>(
        format: AuditFormat,
        kinds: impl Iterator<Item = &'k GroupVersionKind>,
        in_files: bool,
    ) -> Self {
        match format {
            // Reports in a cluster are written elsewhere.
            AuditFormat::Table | AuditFormat::Report => Self::Table(Table::new(in_files, kinds)),
            AuditFormat::Json => {
                let kinds: Value = kinds
                    .map(|GroupVersionKind { group, version, kind }| {
                        json!({"group": group, "version": version, "kind": kind})
                    })
                    .collect();
                Self::Json(JsonList::begin(format!("{{\n  \"kinds\": {kinds},\n  \"findings\": ["), "  "))
            }
            AuditFormat::Sarif => Self::Sarif(SarifLog::begin(AuditRule::ALL.map(explained))),
        }
    }

    pub(super) fn add(&mut self, finding: &PlacedFinding<'_>) -> anyhow::Result<()> {
        match self {
            Self::Table(table) => table.add(finding),
            Self::Json(list) => list.push(&json_of(finding))?,
            Self::Sarif(log) => log.push(&finding.sarif())?,
        }
        Ok(())
    }

    /// Writes the buffer if it is full.
    pub(super) fn flush_if_full(&mut self, progress: &ProgressBar) -> anyhow::Result<()> {
        let buffered = match self {
            Self::Table(table) => table.buffered(),
            Self::Json(list) | Self::Sarif(SarifLog { list, .. }) => list.text.len(),
        };
        if buffered > FULL { self.flush(Some(progress)) } else { Ok(()) }
    }

    /// Writes the buffer.
    pub(super) fn flush(&mut self, progress: Option<&ProgressBar>) -> anyhow::Result<()> {
        let text = match self {
            Self::Table(table) if table.buffered() == 0 => return Ok(()),
            Self::Table(table) => table.take(),
            Self::Json(list) | Self::Sarif(SarifLog { list, .. }) => std::mem::take(&mut list.text),
        };
        match progress {
            _ if text.is_empty() => Ok(()),
            Some(progress) => progress.suspend(|| output::print_text(text)),
            None => output::print_text(text),
        }
    }

    /// Writes the rest. The whole report is well formed then.
    pub(super) fn close(mut self, tally: &Tally, conclusion: &Conclusion) -> anyhow::Result<()> {
        match &mut self {
            Self::Table(_) => {}
            Self::Json(list) => {
                let mut summary = serde_json::to_value(tally)?;
                if let Some(members) = summary.as_object_mut() {
                    members.insert("complete".to_owned(), conclusion.problems.is_empty().into());
                    members.insert("notAudited".to_owned(), conclusion.problems.clone().into());
                }
                list.end(&format!(",\n  \"summary\": {summary}\n}}\n"));
            }
            Self::Sarif(log) => log.end(conclusion),
        }
        self.flush(None)
    }
}

fn json_of(finding: &PlacedFinding<'_>) -> Value {
    let help = finding.help();
    let PlacedFinding { finding, field, location, said } = finding;
    let ObjectFinding { rule, kind, namespace, name, message, repaired, .. } = finding;
    let (line, column) = location.and_then(|location| location.position).unzip();
    present(json!({
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "namespace": namespace,
        "name": name,
        "finding": rule.impact,
        "rule": rule.id,
        "field": field,
        "message": message,
        "note": said.as_ref().map(|(said, _)| said),
        "helpUri": help.to_string(),
        "mendedByNextWrite": (rule.impact == Impact::Invalid).then_some(repaired),
        "file": location.map(|location| location.file.display().to_string()),
        "line": line,
        "column": column,
    }))
}
