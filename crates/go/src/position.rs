//! Positions in Go files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A position in a Go file. It displays as `file:line:column`, which editors understand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Path of the file, as the caller gave it.
    pub file: Arc<Path>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in bytes, counted from 1, as the Go tools count.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
