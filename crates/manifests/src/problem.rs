//! A problem with a manifest, and its position.

use std::fmt;
use std::path::{Path, PathBuf};

/// A problem with a file, and its position.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Problem {
    /// The file, `<stdin>` for standard input.
    pub file: PathBuf,
    /// Line and column, counted from 1.
    pub position: Option<(usize, usize)>,
    /// The problem, and its remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl Problem {
    /// Returns a problem of a whole file.
    pub fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), position: None, message }
    }

    pub(crate) fn at(file: &Path, position: (usize, usize), message: String) -> Self {
        Self { file: file.to_owned(), position: Some(position), message }
    }
}
