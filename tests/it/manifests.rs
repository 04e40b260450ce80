//! Files of this repository that tests read: rows and samples.

use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file under a folder whose name ends so, as path within the folder and text, sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let top = root().join(folder);
    let mut found = Vec::new();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((relative(&path, &top), text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{extension} under {folder}");
    found
}

/// A YAML document as what it is meant to be. Only `true` and `false` are booleans: a member may be called `y`.
pub(crate) fn parse<T: DeserializeOwned>(path: &str, text: &str) -> T {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn relative(path: &Path, top: &Path) -> String {
    path.strip_prefix(top).unwrap().to_str().unwrap().replace('\\', "/")
}
