//! Reads manifests from files, folders and standard input, and writes them back.
//!
//! The crate `kube-unions-manifests` parses, edits and prints them; this module re-exports it for the commands.

pub use kube_unions_manifests::input::{empty, list};
pub use kube_unions_manifests::{
    Document, Edit, EditedFile, Format, ManifestFile, ManifestRole, Problem, RenderedFile, Section, Stream, applied,
    edit, edit_in_place, edited_value, pretty, to_yaml,
};

use crate::files::{self, Rereadable, StagedFile};
use crate::output::Lines;
use anyhow::Context;
use clap::Args;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::ObjectIndex;
use kube_unions_manifests::input::{STDIN, named};
use kube_unions_manifests::misspelt::is_meant_for_kinds;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, StdinLock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The files and folders that a command works on, positional or as kubectl spells them.
#[derive(Debug, Args)]
pub struct PathArgs {
    /// Files and folders, `-` is standard input
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The same as PATH, as kubectl spells it
    #[arg(short, long, num_args = 1, value_name = "PATH")]
    filename: Vec<PathBuf>,
}

impl PathArgs {
    pub fn all(&self) -> Vec<PathBuf> {
        [&*self.paths, &self.filename].concat()
    }
}

/// The files that were read, and the problems with the others.
#[derive(Debug, Default)]
pub struct ManifestFiles {
    pub files: Vec<ManifestFile>,
    pub problems: Vec<Problem>,
}

impl ManifestFiles {
    /// Returns the documents of all files.
    pub fn documents(&self) -> impl Iterator<Item = Document> {
        self.files.iter().flat_map(ManifestFile::documents)
    }
}

/// The files that were read document by document, and the problems with the others.
#[derive(Debug, Default)]
pub struct Rendered {
    pub files: Vec<RenderedFile>,
    pub problems: Vec<Problem>,
}

impl Rendered {
    /// Returns the objects of all files.
    pub fn documents(&self) -> Vec<Document> {
        self.files.iter().flat_map(RenderedFile::documents).collect()
    }

    /// Returns the reasons why documents could not be read.
    pub fn unread(&self) -> impl Iterator<Item = &Problem> {
        self.files.iter().flat_map(|file| &file.unread)
    }
}

/// Files whose objects are read one after the other, and the problems with the others. What is wrong with a single document is in
/// [`IndexedFiles::unread`] and [`IndexedFiles::duplicates`].
#[derive(Default)]
pub struct IndexedFiles {
    files: Vec<(Rereadable, ObjectIndex)>,
    pub problems: Vec<Problem>,
}

/// Reads files and folders, as [`rendering()`] does. A document that cannot be read, or has a key twice, is a problem. The others of
/// its file are read. A file of which nothing can be read is left out.
pub fn files(paths: &[PathBuf]) -> ManifestFiles {
    let Rendered { files, mut problems } = rendering(paths);
    let of_documents = files.iter().flat_map(|file| file.unread.iter().chain(&file.duplicates));
    problems.extend(of_documents.cloned());
    let is_read = |file: &ManifestFile| file.sections.is_empty() || !file.sections.iter().all(|it| it.is_unread);
    ManifestFiles { files: files.into_iter().map(|rendered| rendered.file).filter(is_read).collect(), problems }
}

/// Reads files and folders, and standard input for `-`, each document on its own. A folder without manifests is a problem, an empty file
/// is not.
pub fn rendering(paths: &[PathBuf]) -> Rendered {
    let (files, problems) = each_file(paths, |path| RenderedFile::read(&named(path), bytes(path)?));
    Rendered { files, problems }
}

/// Finds the objects of files and folders, as [`rendering()`] does, and keeps their places.
pub fn index(paths: &[PathBuf]) -> IndexedFiles {
    let (files, problems) = each_file(paths, |path| {
        let mut content = input(path, Rereadable::of, |stdin| Rereadable::of_pipe(stdin))?;
        let opened = content.open().map_err(|error| of_reading(path, &error))?;
        let index = ObjectIndex::read(named(path), opened)?;
        Ok((content, index))
    });
    IndexedFiles { files, problems }
}

fn each_file<T>(paths: &[PathBuf], mut read: impl FnMut(&Path) -> Result<T, Problem>) -> (Vec<T>, Vec<Problem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        let found = manifests(path).unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        for path in found {
            match read(&path) {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
    }
    (files, problems)
}

impl IndexedFiles {
    /// Returns the reasons why documents could not be read.
    pub fn unread(&self) -> impl Iterator<Item = &Problem> {
        self.files.iter().flat_map(|(_, index)| &index.unread)
    }

    /// Returns the keys that an object has twice. The last one counts.
    pub fn duplicates(&self) -> impl Iterator<Item = &Problem> {
        self.files.iter().flat_map(|(_, index)| &index.duplicates)
    }

    /// Returns the problems with files and with documents, where a key that is there twice is one.
    pub fn all_problems(&self) -> Vec<Problem> {
        self.problems.iter().chain(self.unread()).chain(self.duplicates()).cloned().collect()
    }

    /// Returns the number of documents that describe no kinds.
    pub fn objects(&self) -> usize {
        self.files.iter().map(|(_, index)| index.objects()).sum()
    }

    /// Returns the kinds of the documents that describe no kinds.
    pub fn object_kinds(&self) -> BTreeSet<GroupVersionKind> {
        self.files.iter().flat_map(|(_, index)| index.object_kinds()).cloned().collect()
    }

    /// Reads the documents of a role, and some of the other.
    pub fn documents(&mut self, role: ManifestRole) -> impl Iterator<Item = Result<Document, Problem>> {
        let files = self.files.iter_mut().filter(move |(_, index)| index.has(role));
        files.flat_map(move |(content, index)| {
            let opened = content.open().map_err(|error| of_reading(index.path(), &error));
            let (problem, documents) = match opened {
                Ok(source) => (None, Some(index.documents(source, role))),
                Err(problem) => (Some(Err(problem)), None),
            };
            problem.into_iter().chain(documents.into_iter().flatten())
        })
    }

    /// Shows the documents of a role, and some of the other, one after the other. What cannot be read is one more problem.
    pub fn each(&mut self, role: ManifestRole, mut see: impl FnMut(Document)) {
        let mut problems = Vec::new();
        for document in self.documents(role) {
            match document {
                Ok(document) => see(document),
                Err(problem) => problems.push(problem),
            }
        }
        self.problems.append(&mut problems);
    }

    /// Reads the documents that describe kinds, or are meant to.
    pub fn kinds(&mut self) -> Vec<Document> {
        let mut kinds = Vec::new();
        self.each(ManifestRole::Kinds, |document| kinds.extend(Some(document).filter(is_meant_for_kinds)));
        kinds
    }
}

/// Returns the documents of files and folders. Fails with the problems of all files.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let manifests = files(paths);
    fail_on(&manifests.problems)?;
    Ok(manifests.documents().collect())
}

/// Parses the content of a file or of standard input.
pub fn file(file: &Path, bytes: Vec<u8>) -> Result<ManifestFile, Problem> {
    ManifestFile::read(named(file), bytes)
}

/// Returns the documents in the content of a file or of standard input.
pub fn parse(file: &Path, bytes: Vec<u8>) -> Result<Vec<Document>, Problem> {
    Ok(self::file(file, bytes)?.documents())
}

/// Reads a file, or standard input for `-`, which can be read only once in a run.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Problem> {
    input(file, files::read, |stdin| files::read_bounded(stdin))
}

fn input<T>(
    file: &Path,
    of_file: impl FnOnce(&Path) -> io::Result<T>,
    of_stdin: impl FnOnce(StdinLock<'_>) -> io::Result<T>,
) -> Result<T, Problem> {
    static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);
    let read = if file == Path::new(STDIN) {
        if STDIN_IS_READ.swap(true, Ordering::Relaxed) {
            let message = "only one file can be `-`: standard input can be read only once";
            return Err(Problem::of_file(&named(file), message.to_owned()));
        }
        of_stdin(io::stdin().lock())
    } else {
        of_file(file)
    };
    read.map_err(|error| of_reading(&named(file), &error))
}

/// Returns a message about the object of a document, with its place and its name.
pub fn line_about(document: &Document, message: &str) -> String {
    format!("{} {}: {message}", place(document, ""), document.name.as_deref().unwrap_or_default())
}

/// Returns the place of a value in a document, `file:line:column:`.
pub fn place(document: &Document, pointer: &str) -> String {
    let (line, column) = document.position(pointer).unwrap_or((1, 1));
    format!("{}:{line}:{column}:", document.file.display())
}

/// Fails if there are problems, with a line for each.
pub fn fail_on(problems: &[Problem]) -> anyhow::Result<()> {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(Lines(lines).into()) }
}

/// Edits the CRDs of a file. All other bytes stay as they are.
pub fn edit_crds(
    file: &ManifestFile,
    edits_of: impl FnMut(&Document) -> anyhow::Result<Vec<Edit>>,
) -> anyhow::Result<EditedFile> {
    kube_unions_manifests::edit_crds(file, edits_of)
}

/// Replaces a file if its text changed, by a rename, so that nobody reads half a file.
pub fn write_back(file: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write `{}`", file.display());
    let before = std::fs::read(file).with_context(context)?;
    if before == text.as_bytes() {
        return Ok(());
    }
    StagedFile::of_output(file, text.as_bytes()).and_then(StagedFile::persist).with_context(context)
}

/// Returns the manifests in a folder and its subfolders, sorted. Returns a file whatever its name.
fn manifests(path: &Path) -> Result<Vec<PathBuf>, Problem> {
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
pub fn manifests_below(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    below(path, is_visible, is_manifest)
}

/// Returns the wanted files in a folder and its subfolders, sorted. Returns a file even if it is not wanted. Skips files and
/// folders whose names do not count.
pub fn below(
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

pub fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
        && path.is_file()
}

/// Returns the problem of a file that cannot be read.
pub fn of_reading(file: &Path, error: &io::Error) -> Problem {
    let message = if error.kind() == ErrorKind::NotFound {
        "no such file or folder".to_owned()
    } else {
        format!("cannot be read: {error}")
    };
    Problem::of_file(file, message)
}
