//! Which comments belong to a declaration: the group that ends on the line above it, and the one before that, as the
//! generators of CRDs have it. Comments that share a line with what stands before them belong to nothing.

use super::super::finding::Severity;
use super::super::marker::{self, Marker, Meaning};
use super::super::types::Misplaced;
use super::SourceText;
use tree_sitter::Node;

/// The comments of a list of declarations, as they are met.
pub(super) struct Comments<'a, 's> {
    source: &'a SourceText<'s>,
    groups: Vec<Group>,
    /// The line on which what is before the comments ends.
    last_row: Option<usize>,
    misplaced: Vec<Misplaced>,
}

/// Comments without a blank line between them.
struct Group {
    last_row: usize,
    markers: Vec<Marker>,
}

/// The groups before one declaration, nearest last, and the row where that begins.
pub(super) struct Groups {
    groups: Vec<Group>,
    row: usize,
}

impl<'a, 's> Comments<'a, 's> {
    pub(super) fn new(source: &'a SourceText<'s>) -> Self {
        Self { source, groups: Vec::new(), last_row: None, misplaced: Vec::new() }
    }

    /// Takes a node if it is a comment or punctuation, so that what is left are declarations.
    pub(super) fn take(&mut self, node: Node<'_>) -> bool {
        if node.kind() != "comment" {
            if matches!(node.kind(), "{" | "(") {
                self.last_row = Some(node.end_position().row);
            }
            return !node.is_named();
        }
        let (first_row, last_row) = (node.start_position().row, node.end_position().row);
        let text = self.source.text(node);
        let trailing = self.last_row == Some(first_row);
        let found = text.strip_prefix("//").and_then(marker::read);
        let marker = found.map(|(spelling, meaning)| Marker { at: self.source.position(node), spelling, meaning });
        if trailing {
            let message = "stands behind what it is about; write it on a line above";
            self.misplaced.extend(marker.filter(is_meant).map(|marker| misplaced(&marker, message)));
            return true;
        }
        if text.starts_with("/*") {
            self.refuse_block(node, text);
        }
        match self.groups.last_mut().filter(|group| group.last_row + 1 >= first_row) {
            Some(group) => group.last_row = last_row,
            None => self.groups.push(Group { last_row, markers: Vec::new() }),
        }
        if let Some(group) = self.groups.last_mut() {
            if text.starts_with("//") && text.contains("`json:\"") {
                // A field that was commented out takes what was said of it along.
                group.markers.clear();
            }
            group.markers.extend(marker);
        }
        true
    }

    /// The comments since the declaration before this one.
    pub(super) fn before(&mut self, node: Node<'_>) -> Groups {
        self.last_row = Some(node.end_position().row);
        Groups { groups: std::mem::take(&mut self.groups), row: node.start_position().row }
    }

    /// The markers that belong to the declaration. Those of unions that stand too far from it are reported.
    pub(super) fn markers(&mut self, before: Groups) -> Vec<Marker> {
        let Groups { mut groups, row } = before;
        let adjacent = groups.last().is_some_and(|group| group.last_row + 1 >= row);
        let own = groups.split_off(groups.len().saturating_sub(if adjacent { 2 } else { 1 }));
        self.refuse(groups, "stands too far from a declaration to belong to it; at most one blank line may be between");
        own.into_iter().flat_map(|group| group.markers).collect()
    }

    /// Reports the markers of unions before something that can have none.
    pub(super) fn misplaced(&mut self, before: Groups, on: &str) {
        self.refuse(before.groups, &format!("stands on {on}; it belongs on a struct or on a field of one"));
    }

    /// Reports the markers of unions before something that nobody would take them for.
    pub(super) fn forget(&mut self, before: Groups) {
        self.refuse(before.groups, "stands on nothing; write it above the struct or field that it is about");
    }

    /// Reports the markers of unions that nothing follows.
    pub(super) fn end(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        self.refuse(groups, "stands on nothing; write it above the struct or field that it is about");
    }

    pub(super) fn report(&mut self, misplaced: Misplaced) {
        self.misplaced.push(misplaced);
    }

    pub(super) fn adopt(&mut self, inner: Comments<'_, '_>) {
        self.misplaced.extend(inner.misplaced);
    }

    pub(super) fn into_misplaced(self) -> Vec<Misplaced> {
        self.misplaced
    }

    fn refuse(&mut self, groups: Vec<Group>, message: &str) {
        let markers = groups.into_iter().flat_map(|group| group.markers).filter(about_unions);
        self.misplaced.extend(markers.map(|marker| misplaced(&marker, message)));
    }

    /// Markers are `//` comments; in a block comment nothing reads them.
    fn refuse_block(&mut self, node: Node<'_>, text: &str) {
        let lines = text.trim_start_matches("/*").trim_end_matches("*/").lines().zip(0..);
        for (line, row) in lines {
            let Some((spelling, meaning)) = marker::read(line.trim().trim_start_matches('*')) else { continue };
            let mut at = self.source.position(node);
            at.line += row;
            let marker = Marker { at, spelling, meaning };
            if is_meant(&marker) {
                let message = "stands in a block comment, where no marker has effect; begin its line with `//`";
                self.misplaced.push(misplaced(&marker, message));
            }
        }
    }
}

fn about_unions(marker: &Marker) -> bool {
    marker.meaning.is_about_unions()
}

/// Whether it reads as a marker to the end. Where none has effect, a text that only begins as one is a text.
fn is_meant(marker: &Marker) -> bool {
    about_unions(marker) && !matches!(marker.meaning, Meaning::Faulty(_))
}

fn misplaced(marker: &Marker, message: &str) -> Misplaced {
    let message = if let Meaning::Faulty(fault) = &marker.meaning {
        fault.clone()
    } else {
        format!("`{}` {message}", marker.spelling)
    };
    Misplaced { at: marker.at.clone(), severity: Severity::Error, message }
}
