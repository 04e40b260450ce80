//! The report as a table with a row for each finding.
//!
//! The kinds are known from the start. The other columns grow with wider values; rows that are written stay as they are.

use crate::cli::audit::rules::{Impact, ObjectFinding, title};
use crate::cli::output::Paint;
use crate::cli::sarif::FilePlace;
use kube_unions_core::field_path::Printable;
use kube_unions_core::names::GroupVersionKind;

/// Greatest width of a column, in characters. A longer cell shifts the rest of its row.
const WIDEST: usize = 80;

/// Longest name that is shown, in bytes; Kubernetes allows no longer one, but a file may have it.
const LONGEST_NAME: usize = 253;

/// The column with the impact, in a table without places.
const IMPACT: usize = 3;

/// A table that is being written.
pub(super) struct Table {
    titles: Vec<&'static str>,
    /// True if the first column has the place of the field.
    in_files: bool,
    paint: Paint,
    widths: Vec<usize>,
    rows: Vec<(Impact, Vec<String>)>,
    /// Bytes of the buffered cells.
    buffered: usize,
    begun: bool,
}

impl Table {
    pub(super) fn new<'k>(in_files: bool, kinds: impl Iterator<Item = &'k GroupVersionKind>) -> Self {
        let place = in_files.then_some("PLACE");
        let titles: Vec<_> =
            place.into_iter().chain(["KIND", "NAMESPACE", "NAME", "FINDING", "FIELD", "MESSAGE"]).collect();
        let mut widths: Vec<usize> = titles.iter().map(|title| title.len()).collect();
        let kinds = kinds.map(|kind| title(kind).chars().count().min(WIDEST));
        if let Some(width) = widths.get_mut(usize::from(in_files)) {
            *width = kinds.fold(*width, usize::max);
        }
        let paint = Paint::of(&std::io::stdout());
        Self { titles, in_files, paint, widths, rows: Vec::new(), buffered: 0, begun: false }
    }

    pub(super) fn add(&mut self, finding: &ObjectFinding<'_>) {
        let shown = |text: &str| Printable::new(text, LONGEST_NAME).to_string();
        let place = self.in_files.then(|| finding.location.map(place).unwrap_or_default());
        let cells: Vec<String> = place
            .into_iter()
            .chain([
                title(finding.kind),
                shown(finding.namespace),
                shown(finding.name),
                finding.rule.impact().words().to_owned(),
                finding.field.clone(),
                finding.sentence(),
            ])
            .collect();
        self.buffered += cells.iter().map(String::len).sum::<usize>();
        self.rows.push((finding.rule.impact(), cells));
    }

    /// Returns the size of the buffer in bytes, about.
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Takes the lines of the buffer.
    pub(super) fn take(&mut self) -> String {
        let rows = std::mem::take(&mut self.rows);
        self.buffered = 0;
        for (_, cells) in &rows {
            for (width, cell) in self.widths.iter_mut().zip(cells) {
                *width = cell.chars().count().min(WIDEST).max(*width);
            }
        }
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            let titles: Vec<String> = self.titles.iter().map(|&title| title.to_owned()).collect();
            self.line(&mut text, None, &titles);
        }
        for (impact, cells) in &rows {
            self.line(&mut text, Some(*impact), cells);
        }
        text
    }

    fn line(&self, text: &mut String, impact: Option<Impact>, cells: &[String]) {
        let start = text.len();
        for (position, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let padding = width.saturating_sub(cell.chars().count()) + 3;
            match impact.filter(|_| position == IMPACT + usize::from(self.in_files)) {
                Some(Impact::Invalid) => text.push_str(&self.paint.error(cell)),
                Some(Impact::WouldWarn) => text.push_str(&self.paint.warning(cell)),
                Some(Impact::WouldAudit | Impact::WouldChange) | None => text.push_str(cell),
            }
            text.extend(std::iter::repeat_n(' ', padding));
        }
        text.truncate(start + text.get(start..).unwrap_or_default().trim_end().len());
        text.push('\n');
    }
}

fn place(FilePlace { file, position }: FilePlace<'_>) -> String {
    match position {
        Some((line, column)) => format!("{}:{line}:{column}", file.display()),
        None => file.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_kinds_has_room_for_every_kind_from_the_first_line_on() {
        let kind =
            |kind: &str| GroupVersionKind { group: "example.com".into(), version: "v1".into(), kind: kind.into() };
        let kinds = [kind("Widget"), kind("WidgetReplacement"), kind(&"W".repeat(2 * WIDEST))];
        for in_files in [false, true] {
            let header = |kinds: &[GroupVersionKind]| Table::new(in_files, kinds.iter()).take();
            let room = |header: &str| header.find("NAMESPACE").unwrap() - header.find("KIND").unwrap();
            assert_eq!(room(&header(&[])), "KIND".len() + 3);
            assert_eq!(room(&header(&kinds[..1])), "Widget.example.com/v1".len() + 3);
            assert_eq!(room(&header(&kinds[..2])), "WidgetReplacement.example.com/v1".len() + 3);
            assert_eq!(room(&header(&kinds)), WIDEST + 3);
        }
    }
}
