//! Finds the manifest files of a path, and names the problem of a path that cannot be read.

use kube_unions_manifests::Problem;
use kube_unions_manifests::input::STDIN;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Returns the manifests in a folder and its subfolders, sorted. Returns a file whatever its name.
pub(super) fn manifests(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path == Path::new(STDIN) {
        return Ok(vec![path.to_owned()]);
    }
    let found = manifests_below(path)?;
    if found.is_empty() {
        let message = "no manifests in this folder (looked for .yaml, .yml and .json)";
        return Err(Problem::of_file(path, message.to_owned()));
    }
    Ok(found)
}

/// Returns the manifests in a folder and its subfolders, sorted. The list may be empty. Returns a file whatever its name.
pub(crate) fn manifests_below(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    below(path, is_visible, is_manifest)
}

/// Returns the wanted files in a folder and its subfolders, sorted. Returns a file even if it is not wanted. Skips files and
/// folders whose names do not count.
pub(crate) fn below(
    path: &Path,
    counts: impl Fn(&str) -> bool,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, Problem> {
    if !path.metadata().map_err(|error| of_reading(path, &error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| of_reading(&folder, &error))? {
            let entry = entry.map_err(|error| of_reading(&folder, &error))?;
            if !counts(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let path = entry.path();
            // Do not follow a link to a folder: it may form a cycle.
            if entry.file_type().map_err(|error| of_reading(&path, &error))?.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A mounted `ConfigMap` has its files twice, the second time in hidden folders.
fn is_visible(name: &str) -> bool {
    !name.starts_with('.')
}

pub(crate) fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
        && path.is_file()
}

/// Returns the problem of a file that cannot be read.
pub(crate) fn of_reading(file: &Path, error: &std::io::Error) -> Problem {
    let message = if error.kind() == ErrorKind::NotFound {
        "no such file or folder".to_owned()
    } else {
        format!("cannot be read: {error}")
    };
    Problem::of_file(file, message)
}
