//! Which files a path stands for.

use super::{Problem, STDIN};
use std::path::{Path, PathBuf};

/// The manifests below a folder, sorted; a file is itself, whatever its name.
pub(super) fn manifests(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path == Path::new(STDIN) {
        return Ok(vec![path.to_owned()]);
    }
    // A mounted ConfigMap keeps its files a second time, in hidden folders.
    let found = below(path, |name| !name.starts_with('.'), is_manifest)?;
    if found.is_empty() {
        let message = "no manifests in this folder (looked for .yaml, .yml and .json)";
        return Err(Problem::of_file(path, message.to_owned()));
    }
    Ok(found)
}

/// The files below a folder that are wanted, sorted; a file is itself, wanted or not. Names that do not `count` are passed over,
/// of files and of folders.
pub(crate) fn below(
    path: &Path,
    counts: impl Fn(&str) -> bool,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, Problem> {
    if !path.metadata().map_err(|error| Problem::of_reading(path, &error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| Problem::of_reading(&folder, &error))? {
            let entry = entry.map_err(|error| Problem::of_reading(&folder, &error))?;
            if !counts(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let path = entry.path();
            // A link to a folder is not followed: it may lead back up.
            if entry.file_type().map_err(|error| Problem::of_reading(&path, &error))?.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
        && path.is_file()
}
