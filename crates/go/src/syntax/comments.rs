//! Assigns comments to declarations, as the CRD generators do: the group of comments that ends on the line above a declaration,
//! and the group before that one. A comment on the same line as a declaration belongs to nothing. Refuses
//! markers that do not fit their declaration.

use super::source::SourceText;
use crate::finding::{FindingKind, GoFinding, Position};
use crate::marker::{Marker, Meaning};
use crate::types::{Field, Type, is_predeclared};
use tree_sitter::Node;

/// The comments in a list of declarations, in the order of the text.
pub(super) struct Comments<'a, 's> {
    source: &'a SourceText<'s>,
    groups: Vec<CommentGroup>,
    /// Row on which the previous declaration or bracket ends.
    last_row: Option<usize>,
}

/// Comments without a blank line between them.
struct CommentGroup {
    last_row: usize,
    markers: Vec<Marker>,
}

/// The groups before a declaration, the nearest last.
pub(super) struct CommentGroups<'a, 's> {
    source: &'a SourceText<'s>,
    groups: Vec<CommentGroup>,
    /// Row on which the declaration begins.
    row: usize,
}

impl<'a, 's> Comments<'a, 's> {
    pub(super) fn new(source: &'a SourceText<'s>) -> Self {
        Self { source, groups: Vec::new(), last_row: None }
    }

    /// Returns the comments between the previous declaration and this one. Takes a comment or punctuation and returns `None`.
    pub(super) fn before(&mut self, node: Node<'_>) -> Option<CommentGroups<'a, 's>> {
        if node.kind() == "comment" {
            self.take(node);
            return None;
        }
        if node.is_named() || matches!(node.kind(), "{" | "(") {
            self.last_row = Some(node.end_position().row);
        }
        let row = node.start_position().row;
        let groups = || CommentGroups { source: self.source, groups: std::mem::take(&mut self.groups), row };
        node.is_named().then(groups)
    }

    fn take(&mut self, node: Node<'_>) {
        let (first_row, last_row) = (node.start_position().row, node.end_position().row);
        let text = self.source.text(node);
        let trailing = self.last_row == Some(first_row);
        let line = text.strip_prefix("//");
        let marker = line.and_then(|line| Marker::parse(line, || self.source.position(node)));
        if trailing {
            let message = "has no effect behind a declaration: write it on a line above";
            self.source.refuse(marker.filter(is_valid), message);
            return;
        }
        if text.starts_with("/*") {
            self.refuse_block(node, text);
        }
        match self.groups.last_mut().filter(|group| group.last_row + 1 >= first_row) {
            Some(group) => group.last_row = last_row,
            None => self.groups.push(CommentGroup { last_row, markers: Vec::new() }),
        }
        if let Some(group) = self.groups.last_mut() {
            if text.starts_with("//") && text.contains("`json:\"") {
                // The markers above belong to a field that was commented out.
                group.markers.clear();
            }
            group.markers.extend(marker);
        }
    }

    /// Skips a declaration, with the comments before it and those behind it on its last line.
    pub(super) fn skip(&mut self) {
        self.groups.clear();
        self.last_row = None;
    }

    /// Ends the list of declarations.
    pub(super) fn finish(self) {
        CommentGroups { source: self.source, groups: self.groups, row: 0 }.refuse_detached();
    }

    /// Reports the union markers in a block comment, which no tool reads.
    fn refuse_block(&mut self, node: Node<'_>, text: &str) {
        let lines = text.trim_start_matches("/*").trim_end_matches("*/").lines().zip(0..);
        for (line, row) in lines {
            let at = || {
                let at = self.source.position(node);
                Position { line: at.line + row, ..at }
            };
            let marker = Marker::parse(line.trim().trim_start_matches('*'), at);
            if let Some(marker) = marker.filter(is_valid) {
                self.source.refuse([marker], "has no effect in a block comment: begin its line with `//`");
            }
        }
    }
}

impl CommentGroups<'_, '_> {
    /// Returns the markers that belong to the declaration, and reports union markers that are too far away.
    pub(super) fn markers(mut self) -> Vec<Marker> {
        let adjacent = self.groups.last().is_some_and(|group| group.last_row + 1 >= self.row);
        let own = self.groups.split_off(self.groups.len().saturating_sub(if adjacent { 2 } else { 1 }));
        self.refuse("is too far from a declaration to have an effect: leave at most one blank line between");
        own.into_iter().flat_map(|group| group.markers).collect()
    }

    /// Reports the union markers before a declaration that cannot have any.
    pub(super) fn refuse_on(self, declaration: &str) {
        self.refuse(&format!("has no effect on {declaration}: write it above a struct or one of its fields"));
    }

    /// Reports the union markers that no declaration follows.
    pub(super) fn refuse_detached(self) {
        self.refuse("is not on a declaration: write it above a struct or one of its fields");
    }

    fn refuse(self, message: &str) {
        let markers = self.groups.into_iter().flat_map(|group| group.markers);
        self.source.refuse(markers.filter(|marker| marker.meaning.is_about_unions()), message);
    }
}

impl SourceText<'_> {
    fn refuse(&self, markers: impl IntoIterator<Item = Marker>, message: &str) {
        for marker in markers {
            let (kind, message) = if let Meaning::Invalid(error) = marker.meaning {
                (FindingKind::InvalidMarker, error)
            } else {
                (FindingKind::MisplacedMarker, format!("`{}` {message}", marker.spelling))
            };
            self.report(GoFinding::new(&marker.at, kind, message));
        }
    }
}

/// Returns true for a complete union marker. Prose may begin like one.
fn is_valid(marker: &Marker) -> bool {
    marker.meaning.is_about_unions() && !matches!(marker.meaning, Meaning::Invalid(_))
}

/// Returns the markers that fit a type, and reports the others and the invalid ones.
pub(super) fn keep_fitting_type_markers(
    markers: Vec<Marker>,
    definition: &Type,
    source: &SourceText<'_>,
) -> Vec<Marker> {
    let complaint = |meaning: &Meaning| {
        if is_for_fields(meaning) {
            return Some("has no effect on a type: write it above a field of a struct");
        }
        let is_for_structs = matches!(meaning, Meaning::Union | Meaning::OneOf(_) | Meaning::Subfield(..));
        let misplaced = is_for_structs && !may_be_struct(definition);
        misplaced.then_some("has no effect on a type that is not a struct")
    };
    keep_fitting(markers, complaint, source)
}

/// Returns a field with the markers that fit it, and reports the others and the invalid ones.
pub(super) fn with_fitting_markers(field: Field, markers: &[Marker], source: &SourceText<'_>) -> Field {
    let complaint = |meaning: &Meaning| {
        // controller-gen reads groups on declarations only.
        let is_group = matches!(meaning, Meaning::OneOf(_));
        if is_group || (*meaning == Meaning::Union && !is_anonymous_struct(&field.written)) {
            Some("has no effect on a field: write it above the struct that has the members")
        } else if is_for_fields(meaning) && field.is_inlined() {
            Some("has no effect on an inlined struct: write it above one of its fields")
        } else if is_for_fields(meaning) && field.json_name().is_none() {
            Some("has no effect on a field that JSON does not have: export the field and give it a `json` tag")
        } else {
            None
        }
    };
    let markers = keep_fitting(markers.to_vec(), complaint, source);
    Field { markers, ..field }
}

fn keep_fitting(
    mut markers: Vec<Marker>,
    complaint: impl Fn(&Meaning) -> Option<&'static str>,
    source: &SourceText<'_>,
) -> Vec<Marker> {
    markers.retain(|marker| {
        let misplaced = complaint(&marker.meaning);
        let (kind, message) = match (&marker.meaning, misplaced) {
            (Meaning::Invalid(message), _) => (FindingKind::InvalidMarker, message.clone()),
            (Meaning::Unsupported(message), _) => (FindingKind::UnsupportedMarker, message.clone()),
            (_, Some(complaint)) => (FindingKind::MisplacedMarker, format!("`{}` {complaint}", marker.spelling)),
            (_, None) => {
                // A declared union does not have the condition of its marker.
                if let Marker { at, spelling, condition: Some(condition), .. } = marker {
                    let message = format!("`{condition}` is ignored: `{spelling}` is declared whatever the option is");
                    source.report(GoFinding::new(at, FindingKind::ConditionalMarker, message));
                }
                return true;
            }
        };
        source.report(GoFinding::new(&marker.at, kind, message));
        misplaced.is_none()
    });
    markers
}

fn is_for_fields(meaning: &Meaning) -> bool {
    matches!(
        meaning,
        Meaning::Discriminator { .. } | Meaning::Member(_) | Meaning::DiscriminatedBy(_) | Meaning::Excludes(_)
    )
}

/// Returns true for a struct and for a name that may stand for one.
fn may_be_struct(written: &Type) -> bool {
    match written {
        Type::Struct(_) => true,
        Type::Named { qualifier, name, .. } => qualifier.is_some() || !is_predeclared(name),
        Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Other => false,
    }
}

/// Returns true for a struct without a name, or a pointer, list or map of one.
fn is_anonymous_struct(written: &Type) -> bool {
    match written {
        Type::Struct(_) => true,
        Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => is_anonymous_struct(inner),
        Type::Named { .. } | Type::Other => false,
    }
}
