//! The output of an audit as a table, JSON or SARIF. Every format is written while findings come in, through a bounded buffer.

mod json;
mod table;

use super::arguments::AuditFormat;
use super::rules::{AuditRule, ObjectFinding};
use super::tally::AuditEnd;
use crate::cli::report::output;
use crate::cli::report::progress::Progress;
use crate::cli::report::sarif::{self, SarifEnd};
use kube_unions_core::names::GroupVersionKind;
use table::Table;

/// The report is written when this many bytes are buffered.
const FULL: usize = 1 << 16;

/// A report that is being written.
pub(super) struct AuditReport {
    style: ReportStyle,
    /// Text that is not written yet. A table buffers its own rows.
    text: String,
    /// True after the first finding.
    begun: bool,
}

enum ReportStyle {
    Table(Table),
    Json,
    Sarif,
}

impl AuditReport {
    /// Begins the report of an audit of these kinds. `in_files` adds the places of fields in files.
    pub(super) fn open<'k>(
        format: AuditFormat,
        kinds: impl Iterator<Item = &'k GroupVersionKind>,
        in_files: bool,
    ) -> anyhow::Result<Self> {
        let (style, text) = match format {
            AuditFormat::Table => (ReportStyle::Table(Table::new(in_files, kinds)), String::new()),
            AuditFormat::Json => (ReportStyle::Json, json::head(kinds)?),
            AuditFormat::Sarif => (ReportStyle::Sarif, sarif::head(AuditRule::ALL.into_iter().map(AuditRule::sarif))?),
        };
        Ok(Self { style, text, begun: false })
    }

    pub(super) fn add(&mut self, finding: &ObjectFinding<'_>) -> anyhow::Result<()> {
        match &mut self.style {
            ReportStyle::Table(table) => table.add(finding),
            ReportStyle::Json | ReportStyle::Sarif => {
                self.text.push_str(if self.begun { ",\n" } else { "\n" });
                self.begun = true;
                let json = matches!(self.style, ReportStyle::Json);
                self.text.push_str(&if json { json::finding(finding)? } else { finding.sarif().text()? });
            }
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
        let rest = match &self.style {
            ReportStyle::Table(_) => String::new(),
            ReportStyle::Json => json::tail(end, self.begun)?,
            ReportStyle::Sarif => sarif::tail(&SarifEnd { problems: end.problems, code: end.code }, self.begun)?,
        };
        self.text.push_str(&rest);
        if self.buffered() == 0 { Ok(()) } else { self.write(None) }
    }

    fn buffered(&self) -> usize {
        match &self.style {
            ReportStyle::Table(table) => table.buffered(),
            ReportStyle::Json | ReportStyle::Sarif => self.text.len(),
        }
    }

    fn write(&mut self, progress: Option<&Progress>) -> anyhow::Result<()> {
        let text = match &mut self.style {
            ReportStyle::Table(table) => table.take(),
            ReportStyle::Json | ReportStyle::Sarif => std::mem::take(&mut self.text),
        };
        match progress {
            Some(progress) => progress.suspend(|| output::tell(text)),
            None => output::tell(text),
        }
    }
}
