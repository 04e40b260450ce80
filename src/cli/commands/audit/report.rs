//! The output of an audit as a table, JSON or SARIF. Every format is written while findings come in, through a bounded buffer.

mod json;
mod table;

use super::arguments::AuditFormat;
use super::rules::{AuditRule, ObjectFinding};
use super::tally::AuditEnd;
use crate::cli::report::json_list::JsonList;
use crate::cli::report::output;
use crate::cli::report::progress::Progress;
use crate::cli::report::sarif::SarifLog;
use kube_unions_core::names::GroupVersionKind;
use table::Table;

/// The report is written when this many bytes are buffered.
const FULL: usize = 1 << 16;

/// A report that is being written.
pub(super) struct AuditReport {
    style: ReportStyle,
}

enum ReportStyle {
    Table(Table),
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
        let style = match format {
            AuditFormat::Table => ReportStyle::Table(Table::new(in_files, kinds)),
            AuditFormat::Json => ReportStyle::Json(json::list(kinds)),
            AuditFormat::Sarif => ReportStyle::Sarif(SarifLog::begin(AuditRule::ALL.map(AuditRule::sarif))),
        };
        Self { style }
    }

    pub(super) fn add(&mut self, finding: &ObjectFinding<'_>) -> anyhow::Result<()> {
        match &mut self.style {
            ReportStyle::Table(table) => table.add(finding),
            ReportStyle::Json(list) => list.push(&json::finding(finding))?,
            ReportStyle::Sarif(log) => log.push(&finding.sarif())?,
        }
        Ok(())
    }

    /// Returns true if it is time to flush.
    pub(super) fn is_full(&self) -> bool {
        self.buffered() > FULL
    }

    /// Writes the buffer.
    pub(super) fn flush(&mut self, progress: &Progress) -> anyhow::Result<()> {
        if self.buffered() == 0 { Ok(()) } else { self.write(Some(progress)) }
    }

    /// Writes the rest. The whole report is well formed then.
    pub(super) fn close(mut self, end: &AuditEnd<'_>) -> anyhow::Result<()> {
        match &mut self.style {
            ReportStyle::Table(_) => {}
            ReportStyle::Json(list) => list.end(&json::rest(end)?),
            ReportStyle::Sarif(log) => log.end(end.problems, end.code),
        }
        if self.buffered() == 0 { Ok(()) } else { self.write(None) }
    }

    fn buffered(&self) -> usize {
        match &self.style {
            ReportStyle::Table(table) => table.buffered(),
            ReportStyle::Json(list) => list.text.len(),
            ReportStyle::Sarif(log) => log.list.text.len(),
        }
    }

    fn write(&mut self, progress: Option<&Progress>) -> anyhow::Result<()> {
        let text = match &mut self.style {
            ReportStyle::Table(table) => table.take(),
            ReportStyle::Json(list) => std::mem::take(&mut list.text),
            ReportStyle::Sarif(log) => std::mem::take(&mut log.list.text),
        };
        match progress {
            Some(progress) => progress.suspend(|| output::tell(text)),
            None => output::tell(text),
        }
    }
}
