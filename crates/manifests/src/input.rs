//! The names of inputs in messages.

use std::path::{Path, PathBuf};

/// Maximum size of one text that is held in memory, in bytes: a document, an item of a long list, or a file that cannot be cut into
/// these.
pub const LARGEST: u64 = 512 << 20;

/// The argument for standard input.
pub const STDIN: &str = "-";

/// The name of standard input in positions.
const STDIN_NAME: &str = "<stdin>";

/// Returns the name of a file in positions.
pub fn named(file: &Path) -> PathBuf {
    if file == Path::new(STDIN) { PathBuf::from(STDIN_NAME) } else { file.to_owned() }
}

/// Returns the message for inputs without a document, each empty or with comments only.
pub fn empty(paths: &[PathBuf]) -> String {
    format!("no objects in {}: the input is empty", list(paths))
}

/// Returns paths as a message names them.
pub fn list(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match path.to_str() {
        Some(STDIN) => "standard input".to_owned(),
        _ => format!("`{}`", path.display()),
    };
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}
