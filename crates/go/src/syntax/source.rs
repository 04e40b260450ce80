//! The text behind the nodes of a syntax tree, and the error of a file that is left out.

use crate::finding::{GoFinding, Position};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tree_sitter::Node;

/// The text of a file.
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
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum GoSyntaxError {
    /// The package clause or an import has a syntax error, or a comment or raw string has no end.
    #[error("invalid Go: {message}; the file is left out")]
    InvalidGo { position: Position, message: String },
    /// The file is not UTF-8.
    #[error("invalid UTF-8; the file is left out")]
    InvalidUtf8 {
        /// Position of the first invalid byte.
        position: Position,
    },
}

impl GoSyntaxError {
    /// Returns the position of the error.
    pub fn position(&self) -> &Position {
        match self {
            Self::InvalidGo { position, .. } | Self::InvalidUtf8 { position } => position,
        }
    }
}
