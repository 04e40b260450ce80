//! Which files a path stands for.

use super::{Problem, STDIN};
use std::path::{Path, PathBuf};

/// The manifests below a folder, sorted; a file is itself, whatever its name.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path == Path::new(STDIN) {
        return Ok(vec![path.to_owned()]);
    }
    if !path.metadata().map_err(|error| Problem::of_reading(path, &error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| Problem::of_reading(&folder, &error))? {
            let entry = entry.map_err(|error| Problem::of_reading(&folder, &error))?;
            // A mounted ConfigMap keeps its files a second time, in hidden folders.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // A link to a folder is not followed: it may lead back up.
            if entry.file_type().map_err(|error| Problem::of_reading(&path, &error))?.is_dir() {
                folders.push(path);
            } else if is_manifest(&path) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(Problem::of_file(
            path,
            "no manifests in this folder (looked for .yaml, .yml and .json)".to_owned(),
        ));
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
        && path.is_file()
}
