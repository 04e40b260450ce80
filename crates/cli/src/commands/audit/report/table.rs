//! The report as a table with a row for each finding.
//!
//! The kinds are known from the start. The other columns grow with wider values; rows that are written stay as they are. On a
//! terminal that is narrower than the first rows, every finding is a paragraph instead.

use crate::commands::audit::rules::PlacedFinding;
use crate::report::output::{self, Paint};
use kube_unions_core::field_path::Printable;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_webhook::audit::finding::{Impact, title};

/// Greatest width of a column, in characters. A longer cell shifts the rest of its row.
const WIDEST: usize = 80;

/// Spaces between columns.
const GAP: usize = 3;

/// Spaces before the second line of a paragraph, and those after it.
const INDENT: usize = 4;

/// Longest name that is shown, in bytes; Kubernetes allows no longer one, but a file may have it.
const LONGEST_NAME: usize = 253;

/// The column with the impact, in a table without places.
const IMPACT: usize = 3;

/// A table that is being written.
pub(in crate::commands::audit) struct Table {
    titles: Vec<&'static str>,
    /// True if the first column has the place of the field.
    in_files: bool,
    paint: Paint,
    widths: Vec<usize>,
    rows: Vec<(Impact, Vec<String>)>,
    /// Bytes of the buffered cells.
    buffered: usize,
    begun: bool,
    /// The width of the terminal, in characters, if it is too narrow for rows. Before the first rows, the width of any
    /// terminal.
    narrow: Option<usize>,
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
        let narrow = output::terminal_width();
        Self { titles, in_files, paint, widths, rows: Vec::new(), buffered: 0, begun: false, narrow }
    }

    pub(super) fn add(&mut self, placed: &PlacedFinding<'_>) {
        let PlacedFinding { finding, field, location, .. } = placed;
        let shown = |text: &str| Printable::new(text, LONGEST_NAME).to_string();
        let place = self.in_files.then(|| location.as_ref().map(ToString::to_string).unwrap_or_default());
        let cells: Vec<String> = place
            .into_iter()
            .chain([
                title(finding.kind),
                shown(finding.namespace),
                shown(finding.name),
                finding.rule.impact.words().to_owned(),
                field.clone(),
                placed.sentence(),
            ])
            .map(|cell| output::line(&cell).into_owned())
            .collect();
        self.buffered += cells.iter().map(String::len).sum::<usize>();
        self.rows.push((finding.rule.impact, cells));
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
        let widest = self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1);
        let is_first = !std::mem::replace(&mut self.begun, true);
        self.narrow = self.narrow.filter(|width| !is_first || *width < widest);
        if let Some(width) = self.narrow {
            for (impact, cells) in &rows {
                self.paragraph(&mut text, *impact, cells, width);
            }
            return text;
        }
        if is_first {
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
            let padding = width.saturating_sub(cell.chars().count()) + GAP;
            text.push_str(&self.painted(impact.filter(|_| position == self.impact_column()), cell));
            text.extend(std::iter::repeat_n(' ', padding));
        }
        text.truncate(start + text.get(start..).unwrap_or_default().trim_end().len());
        text.push('\n');
    }

    fn impact_column(&self) -> usize {
        IMPACT + usize::from(self.in_files)
    }

    fn painted(&self, impact: Option<Impact>, text: &str) -> String {
        match impact {
            Some(Impact::Invalid) => self.paint.error(text),
            Some(Impact::WouldWarn) => self.paint.warning(text),
            Some(Impact::WouldAudit | Impact::WouldChange) | None => text.to_owned(),
        }
    }

    /// Writes a row as a paragraph of lines that are at most `width` wide, unless a word is longer.
    fn paragraph(&self, text: &mut String, impact: Impact, cells: &[String], width: usize) {
        let mut column = 0;
        let mut cells = cells.to_vec();
        // NAMESPACE/NAME, as kubectl writes it.
        if let [.., namespace, name, _, _, _] = cells.as_mut_slice()
            && !namespace.is_empty()
        {
            *name = format!("{namespace}/{name}");
            namespace.clear();
        }
        for (position, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let last = position + 1 == cells.len();
            let impact = (position == self.impact_column()).then_some(impact);
            let mut words = cell.split_whitespace().peekable();
            while let Some(word) = words.next() {
                let colon = if !last && words.peek().is_none() { ":" } else { "" };
                let length = word.chars().count() + colon.len();
                if column > 0 && column + 1 + length > width {
                    text.push('\n');
                    text.extend(std::iter::repeat_n(' ', INDENT));
                    column = INDENT;
                } else if column > 0 {
                    text.push(' ');
                    column += 1;
                }
                text.push_str(&self.painted(impact, word));
                text.push_str(colon);
                column += length;
            }
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_breaks_between_words_and_has_every_cell_that_is_not_empty() {
        let table = Table { paint: Paint::plain(), ..Table::new(true, std::iter::empty()) };
        let cells =
            ["a.yaml:1:2", "Widget.example.com/v1", "shop", "web", "would change", "spec.type", "set to \"S3\""];
        let mut cells = cells.map(str::to_owned);
        let shown = |cells: &[String], width| {
            let mut text = String::new();
            table.paragraph(&mut text, Impact::WouldChange, cells, width);
            text
        };
        let whole = "a.yaml:1:2: Widget.example.com/v1: shop/web: would change: spec.type: set to \"S3\"\n";
        assert_eq!(shown(&cells, 100), whole);
        assert_eq!(shown(&cells, whole.len() - 1), whole);
        let folded = "a.yaml:1:2: Widget.example.com/v1:\n    shop/web: would change: spec.type:\n    set to \"S3\"\n";
        assert_eq!(shown(&cells, 40), folded);
        assert_eq!(shown(&cells, 1).lines().count(), 9, "a word is never broken");
        cells[2].clear();
        cells[5].clear();
        assert_eq!(shown(&cells, 80), "a.yaml:1:2: Widget.example.com/v1: web: would change: set to \"S3\"\n");
    }

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
