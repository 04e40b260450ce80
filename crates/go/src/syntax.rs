//! Parses Go files with tree-sitter.
//!
//! [`declarations`] reads the top level of a file, [`type_expressions`] its types and fields, [`expressions`] the values of its
//! constants. [`comments`] finds the markers of each declaration and [`fitting`] refuses those that do not fit it. A file with a
//! syntax error is refused as a whole, because the parser would only guess its types.

mod comments;
mod declarations;
mod expressions;
mod fitting;
mod literal;
mod source;
mod type_expressions;

use self::source::SourceText;
use super::position::Position;
use super::types::GoFile;
use std::path::Path;
use std::sync::Arc;
use tree_sitter::{Node, Parser};

/// Deepest nesting of types and expressions.
const DEEPEST: usize = 200;

/// A parser of Go files. One parser serves many files.
pub struct GoParser {
    parser: Parser,
}

/// A file that is not Go. Displays without its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum GoSyntaxError {
    /// The file has a syntax error.
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

impl std::fmt::Debug for GoParser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GoParser").finish_non_exhaustive()
    }
}

impl GoParser {
    /// Creates a parser. `None` means that the linked tree-sitter does not support the grammar, which no release has.
    pub fn new() -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_go::LANGUAGE.into()).ok()?;
        Some(Self { parser })
    }

    /// Parses the bytes of a file. `path` is for positions only.
    ///
    /// # Errors
    /// The bytes are not UTF-8, or not Go.
    pub fn parse(&mut self, path: &Arc<Path>, bytes: &[u8]) -> Result<GoFile, GoSyntaxError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.split(|&byte| byte == b'\n').count();
            let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
            GoSyntaxError::InvalidUtf8 { position: Position { file: Arc::clone(path), line, column } }
        })?;
        // Unlike Go, the grammar requires a newline after the last declaration.
        let ended;
        let text = if text.ends_with('\n') {
            text
        } else {
            ended = format!("{text}\n");
            &ended
        };
        // tree-sitter returns no tree only if it is cancelled.
        let tree = self.parser.parse(text, None).ok_or_else(|| GoSyntaxError::InvalidGo {
            position: Position { file: Arc::clone(path), line: 1, column: 1 },
            message: "the parser was cancelled".to_owned(),
        })?;
        let source = SourceText { path, text };
        match first_error(tree.root_node()) {
            None => Ok(source.file(tree.root_node())),
            Some(node) => Err(GoSyntaxError::InvalidGo {
                position: source.position(node),
                message: if node.is_missing() {
                    format!("`{}` is missing", node.kind())
                } else {
                    "unexpected text in a declaration".to_owned()
                },
            }),
        }
    }
}

/// Returns the first node that is an error or is missing.
fn first_error(root: Node<'_>) -> Option<Node<'_>> {
    let mut node = root.has_error().then_some(root)?;
    while !(node.is_error() || node.is_missing()) {
        let inner = node.children(&mut node.walk()).find(|child| child.has_error() || child.is_missing());
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    Some(node)
}
