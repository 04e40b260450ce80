//! Reads manifests, and edits them in place: YAML and JSON, from files, folders and standard input.
//!
//! A JSON document keeps its text byte for byte; YAML is converted to JSON text. A document that is `null` or empty is absent.
//! Each item of a list is a document. Knows nothing of unions.
//!
//! [`folder`] finds files, [`file`] splits them, [`foreign`] recognises templates and JSON5, [`document`] finds the objects in them, [`edit`] changes them, and [`stream`]
//! joins the results.

mod document;
mod edit;
mod file;
mod folded;
mod folder;
mod foreign;
mod layout;
mod stream;
mod syntax;
mod yaml;

pub(crate) use document::Document;
pub(crate) use edit::{Edit, EditedFile, ItemChanges, applied, edit, edit_crds, edited_value};
pub(crate) use file::{Format, ManifestFile};
pub(crate) use folder::{below, folders_below, is_manifest, manifests_below};
pub(crate) use layout::pretty;
pub(crate) use stream::Stream;

use crate::files::{self as written, FileAccess};
use anyhow::{Context, bail};
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The argument for standard input.
const STDIN: &str = "-";

/// The name of standard input in messages.
const STDIN_NAME: &str = "<stdin>";

/// A problem with a file, and its position.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    /// Line and column, counted from 1.
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) message: String,
}

/// The files that were read, and the problems with the others.
#[derive(Debug, Default)]
pub(crate) struct ManifestFiles {
    pub(crate) files: Vec<ManifestFile>,
    pub(crate) problems: Vec<Problem>,
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
    pub(crate) fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), position: None, message }
    }

    pub(crate) fn of_reading(file: &Path, error: &std::io::Error) -> Self {
        let message = if error.kind() == ErrorKind::NotFound {
            "no such file or folder".to_owned()
        } else {
            format!("cannot be read: {error}")
        };
        Self::of_file(file, message)
    }

    fn at(file: &Path, position: (usize, usize), message: String) -> Self {
        Self { file: file.to_owned(), position: Some(position), message }
    }

    pub(crate) fn of_document(document: &Document, pointer: &str, message: String) -> Self {
        Self { file: document.file.clone(), position: document.position(pointer), message }
    }
}

/// Reads files and folders, and standard input for `-`. A folder without manifests is a problem, an empty file is not.
pub(crate) fn files(paths: &[PathBuf]) -> ManifestFiles {
    let mut read = ManifestFiles::default();
    for path in paths {
        let paths = match folder::manifests(path) {
            Ok(paths) => paths,
            Err(problem) => {
                read.problems.push(problem);
                continue;
            }
        };
        for path in paths {
            match bytes(&path).and_then(|bytes| file(&path, bytes)) {
                Ok(file) => read.files.push(file),
                Err(problem) => read.problems.push(problem),
            }
        }
    }
    read
}

/// Returns the documents of files and folders. Fails with the problems of all files.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let ManifestFiles { files, problems } = files(paths);
    fail_on(&problems)?;
    Ok(files.iter().flat_map(ManifestFile::documents).collect())
}

/// Parses the content of a file or of standard input.
pub(crate) fn file(file: &Path, bytes: Vec<u8>) -> Result<ManifestFile, Problem> {
    ManifestFile::read(named(file), bytes)
}

/// Returns the documents in the content of a file or of standard input.
pub(crate) fn parse(file: &Path, bytes: Vec<u8>) -> Result<Vec<Document>, Problem> {
    Ok(self::file(file, bytes)?.documents())
}

/// Reads a file, or standard input for `-`, which can be read only once in a run.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Problem> {
    static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);
    let mut bytes = Vec::new();
    let read = if file == Path::new(STDIN) {
        if STDIN_IS_READ.swap(true, Ordering::Relaxed) {
            let message = "only one file can be `-`: standard input can be read only once";
            return Err(Problem::of_file(&named(file), message.to_owned()));
        }
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Problem::of_reading(&named(file), &error))
}

/// Fails if there are problems, with a line for each.
pub(crate) fn fail_on(problems: &[Problem]) -> anyhow::Result<()> {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    if lines.is_empty() { Ok(()) } else { bail!("{}", lines.join("\n")) }
}

/// Returns the message for inputs without a document, each empty or with comments only.
pub(crate) fn empty(paths: &[PathBuf]) -> String {
    format!("no objects in {}: the input is empty", list(paths))
}

/// Returns paths as a message names them.
pub(crate) fn list(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| match path.to_str() {
        Some(STDIN) => "standard input".to_owned(),
        _ => format!("`{}`", path.display()),
    };
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Converts JSON text to YAML.
pub(crate) fn to_yaml(json: &str) -> anyhow::Result<String> {
    Ok(yaml::from_value(&serde_json::from_str(json)?)?)
}

/// Returns the YAML of a JSON value, with long texts folded over several lines.
pub(crate) fn to_folded_yaml(value: &serde_json::Value) -> anyhow::Result<String> {
    Ok(folded::from_value(value)?)
}

/// Replaces a file if its text changed, by a rename, so that nobody reads half a file.
pub(crate) fn write_back(file: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write `{}`", file.display());
    let before = std::fs::read(file).with_context(context)?;
    if before == text.as_bytes() {
        return Ok(());
    }
    // Keep a symbolic link and write its target.
    let file = file.canonicalize().with_context(context)?;
    written::replace(&file, text.as_bytes(), FileAccess::Unchanged).with_context(context)
}

fn named(file: &Path) -> PathBuf {
    if file == Path::new(STDIN) { PathBuf::from(STDIN_NAME) } else { file.to_owned() }
}
