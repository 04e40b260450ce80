//! The text behind the nodes of a syntax tree, and the error of a file that is left out.

use crate::finding::{GoFinding, Position};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tree_sitter::Node;

pub(super) struct SourceText<'s> {
    pub(super) path: &'s Arc<Path>,
    pub(super) text: &'s str,
    /// Union markers that have no effect at their position.
    pub(super) misplaced: RefCell<Vec<GoFinding>>,
}

impl<'s> SourceText<'s> {
    pub(super) fn position(&self, node: Node<'_>) -> Position {
        let point = node.start_position();
        Position { file: Arc::clone(self.path), line: point.row + 1, column: point.column + 1 }
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn report(&self, misplaced: GoFinding) {
        self.misplaced.borrow_mut().push(misplaced);
    }

    /// Returns the text of a child by the name of its field in the grammar.
    pub(super) fn child_text(&self, node: Node<'_>, field: &str) -> Option<&'s str> {
        node.child_by_field_name(field).map(|child| self.text(child))
    }
}

/// Returns the named children of a node, without the comments between them.
pub(super) fn operands(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).filter(|child| !child.is_extra()).collect()
}

/// A file without a readable package clause or import, or without an end. Displays without its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {}; the file is left out", .message.as_deref().map_or("UTF-8".into(), |message| format!("Go: {message}")))]
pub struct GoSyntaxError {
    /// Position of the error, or of the first byte that is not UTF-8.
    pub position: Position,
    /// The error. `None`: the file is not UTF-8.
    pub(super) message: Option<String>,
}
