//! Parses Go files with tree-sitter.
//!
//! [`declarations`] reads the top level of a file, its types and fields, and the values of its constants. [`comments`] finds the
//! markers of each declaration and refuses those that do not fit it. In a file with a syntax error, [`chunks`] separates the
//! declarations, and those with an error are left out: Go may be newer than the grammar, and the parser would only guess their
//! types.

mod chunks;
mod comments;
mod declarations;
mod source;

pub use self::source::GoSyntaxError;

use self::chunks::{Chunk, chunks};
use self::declarations::FileReader;
use self::source::SourceText;
use super::finding::Position;
use super::types::GoFile;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use tree_sitter::{Node, Parser, Tree};

/// A parser of Go files. One parser serves many files.
pub struct GoParser {
    parser: Parser,
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

    /// Parses the bytes of a file. `path` is for positions only. Leaves out each declaration with a syntax error.
    ///
    /// # Errors
    /// The bytes are not UTF-8, the package clause or an import is not Go, or a comment or raw string has no end.
    pub fn parse(&mut self, path: &Arc<Path>, bytes: &[u8]) -> Result<GoFile, GoSyntaxError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.split(|&byte| byte == b'\n').count();
            let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
            GoSyntaxError { position: Position { file: Arc::clone(path), line, column }, message: None }
        })?;
        // Unlike Go, the grammar requires a newline after the last declaration.
        let ended;
        let text = if text.ends_with('\n') {
            text
        } else {
            ended = format!("{text}\n");
            &ended
        };
        let source = SourceText { path, text, misplaced: RefCell::default() };
        let tree = self.tree(&source)?;
        let mut reader = FileReader::new(&source);
        let Some(error) = first_error(tree.root_node()) else {
            reader.read(tree.root_node());
            return Ok(reader.finish());
        };
        let error = source.syntax_error(error);
        let declarations = chunks(text).filter(|chunks| chunks.first().is_some_and(|first| first.keyword == "package"));
        let declarations = declarations.ok_or(error)?;
        let read = self.read_chunks(&source, &declarations, &mut reader);
        // Without ranges, the parser reads whole files again.
        let _ = self.parser.set_included_ranges(&[]);
        read?;
        Ok(reader.finish())
    }

    /// Reads each declaration alone, and leaves out those with an error.
    fn read_chunks<'s>(
        &mut self,
        source: &SourceText<'s>,
        chunks: &[Chunk<'s>],
        reader: &mut FileReader<'_, 's>,
    ) -> Result<(), GoSyntaxError> {
        let mut previous = None;
        for chunk in chunks {
            let range = source.range(chunk, previous.as_ref());
            let invalid_range = |_| source.cancelled();
            self.parser.set_included_ranges(&[range]).map_err(invalid_range)?;
            let tree = self.tree(source)?;
            match first_error(tree.root_node()) {
                None => reader.read(tree.root_node()),
                Some(error) if matches!(chunk.keyword, "package" | "import") => return Err(source.syntax_error(error)),
                Some(error) => reader.leave_out(chunk, source.syntax_error(error)),
            }
            previous = Some(range);
        }
        Ok(())
    }

    /// tree-sitter returns no tree only if it is cancelled.
    fn tree(&mut self, source: &SourceText<'_>) -> Result<Tree, GoSyntaxError> {
        self.parser.parse(source.text, None).ok_or_else(|| source.cancelled())
    }
}

impl SourceText<'_> {
    fn syntax_error(&self, node: Node<'_>) -> GoSyntaxError {
        let missing = node.is_missing().then(|| format!("`{}` is missing", node.kind()));
        let message = missing.unwrap_or_else(|| "unexpected text in a declaration".to_owned());
        GoSyntaxError { position: self.position(node), message: Some(message) }
    }

    fn cancelled(&self) -> GoSyntaxError {
        let position = Position { file: Arc::clone(self.path), line: 1, column: 1 };
        GoSyntaxError { position, message: Some("the parser was cancelled".to_owned()) }
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
