//! Finds suites in files and folders: documents of the kind `Suite`, and files by their names (see `convention`).

use super::convention::{TestFiles, TestPart, named};
use super::read;
use super::suite::Suite;
use crate::cli::input::manifest::{self, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Texts that mark a suite file, and a document that is almost a suite. The command parses no file without them, because a
/// folder may have templates and other files that are not manifests.
const TEXTS_OF_SUITES: [&str; 2] = ["kube-union", "unions.dev"];

/// Texts that mark a file that declares unions.
const TEXTS_OF_SOURCES: [&str; 4] = ["CustomResourceDefinition", "UnionDeclaration", "openapi", "swagger"];

/// The suites of some paths.
#[derive(Debug, Default)]
pub(super) struct FoundSuites {
    pub(super) suites: Vec<Suite>,
    pub(super) problems: Vec<Problem>,
    /// The paths without a suite.
    pub(super) without_suite: Vec<PathBuf>,
}

/// Searches paths. Every file is found once.
#[derive(Debug, Default)]
struct Finder {
    found: FoundSuites,
    /// The suite files that were read.
    read: BTreeSet<PathBuf>,
    /// The suites of folders, by position.
    folders: BTreeMap<PathBuf, usize>,
}

/// Finds the suites of paths. A problem with one leaves the others.
pub(super) fn find(paths: &[PathBuf]) -> FoundSuites {
    let mut finder = Finder::default();
    for path in paths {
        match finder.search(path) {
            Ok(true) => {}
            Ok(false) => finder.found.without_suite.push(path.clone()),
            Err(problem) => finder.found.problems.push(problem),
        }
    }
    finder.found
}

impl Finder {
    /// Searches a path. Returns true if it has a suite, or something that should be one.
    fn search(&mut self, path: &Path) -> Result<bool, Problem> {
        if !path.is_dir() {
            return match TestPart::of(path) {
                Some((name, _)) if path.metadata().is_ok() => self.test(path, &name),
                _ => self.file(path, manifest::bytes(path)?),
            };
        }
        let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for file in manifest::manifests_below(path)? {
            folders.entry(file.parent().unwrap_or(Path::new("")).to_owned()).or_default().push(file);
        }
        let mut any = false;
        for (folder, files) in folders {
            any |= self.folder(&folder, files, None);
        }
        Ok(any)
    }

    /// Reads the one test that a file is a part of.
    fn test(&mut self, file: &Path, name: &str) -> Result<bool, Problem> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let listed = named(folder);
        let entries = listed.read_dir().map_err(|error| manifest::of_reading(listed, &error))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| folder.join(entry.file_name())).collect();
        files.retain(|file| manifest::is_manifest(file));
        files.sort();
        Ok(self.folder(folder, files, Some(name)))
    }

    /// Reads the files of a folder. With a name, only the test of that name.
    fn folder(&mut self, folder: &Path, files: Vec<PathBuf>, only: Option<&str>) -> bool {
        let (mut tests, mut sources, mut any) = (TestFiles::default(), Vec::new(), false);
        for file in files {
            if let Some((name, part)) = TestPart::of(&file) {
                tests.push(name, part, file);
                continue;
            }
            let bytes = match manifest::bytes(&file) {
                Ok(bytes) => bytes,
                Err(problem) => {
                    self.found.problems.push(problem);
                    continue;
                }
            };
            if has_any(&bytes, &TEXTS_OF_SOURCES) {
                sources.push(file.clone());
            }
            if only.is_none() && has_any(&bytes, &TEXTS_OF_SUITES) {
                any |= self.file(&file, bytes).unwrap_or_else(|problem| {
                    self.found.problems.push(problem);
                    true
                });
            }
        }
        if let Some(name) = only {
            tests.keep_only(name);
        }
        let are_tests = tests.are_certain() || !tests.is_empty() && (only.is_some() || !sources.is_empty());
        if are_tests {
            self.add(folder, tests.into_suite(folder, sources));
        }
        any || are_tests
    }

    /// Reads the suites in a file. Returns true if it has one, or something that should be one.
    fn file(&mut self, file: &Path, bytes: Vec<u8>) -> Result<bool, Problem> {
        if !self.read.insert(canonical(file)) {
            return Ok(true);
        }
        let mut any = false;
        for document in manifest::parse(file, bytes)? {
            if !read::is_suite(&document) {
                let near = read::near_miss(&document);
                any |= near.is_some();
                self.found.problems.extend(near);
                continue;
            }
            any = true;
            match read::suite(&document) {
                Ok(suite) => self.found.suites.push(suite),
                Err(problem) => self.found.problems.push(problem),
            }
        }
        Ok(any)
    }

    /// Adds the suite of a folder, or its tests to those that are known.
    fn add(&mut self, folder: &Path, suite: Suite) {
        let known = *self.folders.entry(canonical(folder)).or_insert(self.found.suites.len());
        match self.found.suites.get_mut(known) {
            Some(known) => {
                let own: BTreeSet<String> = known.tests.iter().map(|test| test.name.clone()).collect();
                known.tests.extend(suite.tests.into_iter().filter(|test| !own.contains(&test.name)));
            }
            None => self.found.suites.push(suite),
        }
    }
}

fn canonical(path: &Path) -> PathBuf {
    let path = named(path);
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn has_any(bytes: &[u8], texts: &[&str]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    texts.iter().any(|wanted| text.contains(wanted))
}
