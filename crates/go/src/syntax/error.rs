//! The error of a file that is left out.

use crate::position::Position;

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
