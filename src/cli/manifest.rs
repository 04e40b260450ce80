//! Manifests: YAML and JSON, several documents a file, files and folders, standard input.
//!
//! A JSON document keeps its own text, to the byte; YAML becomes JSON text. A document that is `null` or empty is absent,
//! and the items of a list are documents of their own.

mod document;
mod edit;
mod file;
mod folder;
mod layout;
mod stream;
mod syntax;
mod yaml;

pub(crate) use document::Document;
pub(crate) use edit::{Edit, EditedFile, edit, edit_crds, edited_value};
pub(crate) use file::{Format, ManifestFile};
pub(crate) use folder::below;
pub(crate) use layout::pretty;
pub(crate) use stream::Stream;

use anyhow::bail;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// How standard input is asked for, and what it is called in messages.
const STDIN: &str = "-";
const STDIN_NAME: &str = "<stdin>";

/// What is wrong with a file, and where.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    /// Line and column, counted from 1.
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) message: String,
}

/// What was read, and what could not be: one does not hide the other.
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

/// Reads files and folders, standard input for `-`. A folder without manifests is a problem, an empty file is none.
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

/// The documents of files and folders. Fails with everything that could not be read.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let ManifestFiles { files, problems } = files(paths);
    fail_on(&problems)?;
    Ok(files.iter().flat_map(ManifestFile::documents).collect())
}

/// Reads a text as a file holds it, or standard input.
pub(crate) fn file(file: &Path, bytes: Vec<u8>) -> Result<ManifestFile, Problem> {
    ManifestFile::read(named(file), bytes)
}

/// The documents of a text that was read from a file, or from standard input.
pub(crate) fn parse(file: &Path, bytes: Vec<u8>) -> Result<Vec<Document>, Problem> {
    Ok(self::file(file, bytes)?.documents())
}

/// What a file holds, or standard input for `-`.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = if file == Path::new(STDIN) {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Problem::of_reading(&named(file), &error))
}

/// Fails with all problems, one a line.
pub(crate) fn fail_on(problems: &[Problem]) -> anyhow::Result<()> {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    if lines.is_empty() { Ok(()) } else { bail!("{}", lines.join("\n")) }
}

/// Paths as they stand in a message.
pub(crate) fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    paths.join(", ")
}

/// YAML of a JSON text.
pub(crate) fn to_yaml(json: &str) -> anyhow::Result<String> {
    Ok(yaml::from_value(&serde_json::from_str(json)?)?)
}

fn named(file: &Path) -> PathBuf {
    if file == Path::new(STDIN) { PathBuf::from(STDIN_NAME) } else { file.to_owned() }
}
