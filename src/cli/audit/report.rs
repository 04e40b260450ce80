//! The output of an audit, in one of three formats. All of them are written while findings come in: what waits to be written
//! is bounded.

mod json;
mod sarif;
mod table;

use super::AuditFormat;
use super::finding::Finding;
use super::tally::Tally;
use crate::cli::output;
use crate::cli::progress::Progress;
use kube_unions_core::names::GroupVersionKind;
use table::Table;

/// What waits is written once it has so many bytes.
const WAITING: usize = 1 << 16;

/// A report that is being written.
pub(super) struct Report {
    style: Style,
    /// What was not written yet.
    text: String,
    /// Whether there were findings before.
    begun: bool,
}

enum Style {
    Table(Table),
    Json,
    Sarif,
}

/// What there is to say at the end.
pub(super) struct End<'e> {
    pub(super) tally: Tally,
    /// What could not be audited, and why.
    pub(super) troubles: &'e [String],
    /// The exit code.
    pub(super) code: u8,
}

impl Report {
    /// Begins the report of an audit of these kinds, `in_files` or in a cluster.
    pub(super) fn open<'k>(
        format: AuditFormat,
        kinds: impl Iterator<Item = &'k GroupVersionKind>,
        in_files: bool,
    ) -> anyhow::Result<Self> {
        let (style, text) = match format {
            AuditFormat::Table => (Style::Table(Table::new(in_files, kinds)), String::new()),
            AuditFormat::Json => (Style::Json, json::head(kinds)?),
            AuditFormat::Sarif => (Style::Sarif, sarif::head()?),
        };
        Ok(Self { style, text, begun: false })
    }

    pub(super) fn add(&mut self, finding: &Finding<'_>) -> anyhow::Result<()> {
        match &mut self.style {
            Style::Table(table) => table.add(finding),
            Style::Json | Style::Sarif => {
                self.text.push_str(if self.begun { ",\n" } else { "\n" });
                self.begun = true;
                let one =
                    if matches!(self.style, Style::Json) { json::finding(finding) } else { sarif::result(finding) };
                self.text.push_str(&one?);
            }
        }
        Ok(())
    }

    /// Whether it is time to write what waits.
    pub(super) fn is_full(&self) -> bool {
        self.waiting() > WAITING
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self, progress: &Progress) -> anyhow::Result<()> {
        if self.waiting() == 0 { Ok(()) } else { self.write(Some(progress)) }
    }

    /// Writes the rest, so that the whole is well formed.
    pub(super) fn close(mut self, end: &End<'_>) -> anyhow::Result<()> {
        let rest = match &self.style {
            Style::Table(_) => String::new(),
            Style::Json => json::tail(end, self.begun)?,
            Style::Sarif => sarif::tail(end, self.begun)?,
        };
        self.text.push_str(&rest);
        if self.waiting() == 0 { Ok(()) } else { self.write(None) }
    }

    fn waiting(&self) -> usize {
        match &self.style {
            Style::Table(table) => table.waiting(),
            Style::Json | Style::Sarif => self.text.len(),
        }
    }

    fn write(&mut self, progress: Option<&Progress>) -> anyhow::Result<()> {
        let text = match &mut self.style {
            Style::Table(table) => table.take(),
            Style::Json | Style::Sarif => std::mem::take(&mut self.text),
        };
        match progress {
            Some(progress) => progress.suspend(|| output::print(text)),
            None => output::print(text),
        }
    }
}
