//! Paths among the kinds that a user asks for: those behind the first path of a flag, as a shell writes them for `*.yaml`.

use anyhow::bail;
use std::path::PathBuf;

/// Takes the paths out of a list of kinds. Fails for a path without `flag`. No kind has a `/` or ends like a manifest.
pub(crate) fn take_more_paths(kinds: &mut Vec<String>, is_flagged: bool, flag: &str) -> anyhow::Result<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = kinds.extract_if(.., |word| is_path(word)).map(PathBuf::from).collect();
    match paths.first() {
        Some(path) if !is_flagged => bail!("`{0}` is a path, and no kind: write `{flag} {0}`", path.display()),
        _ => Ok(paths),
    }
}

fn is_path(word: &str) -> bool {
    word == "-" || word.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| word.ends_with(end))
}
