//! Finds suites in files and folders: documents of the kind `Suite`, and files by their names: `NAME.old.yaml`, `NAME.new.yaml` and
//! `NAME.want.yaml`, and `valid-NAME.yaml`. The files of a folder are a suite of their own. The other files of the folder declare the
//! unions.

use super::suite::{self, Suite, SuiteTest, TestedObject, TestedWrite, Want};
use crate::input::kinds::BuiltinUnionsArg;
use crate::input::manifest::{self, Problem};
use kube_unions_core::admission::Ratcheting;
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
            if !suite::is_suite(&document) {
                let near = suite::near_miss(&document);
                any |= near.is_some();
                self.found.problems.extend(near);
                continue;
            }
            any = true;
            match suite::suite(&document) {
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

/// The beginning of the names of objects that are accepted and not changed.
const VALID: &str = "valid-";

/// The part of a test that a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TestPart {
    Old,
    New,
    Want,
    /// An object that is accepted and not changed.
    Valid,
}

/// The files of one folder that are parts of tests, by the names of the tests.
#[derive(Debug, Default)]
pub(super) struct TestFiles(BTreeMap<String, Vec<(TestPart, PathBuf)>>);

impl TestPart {
    /// Returns the name of the test that a file belongs to, and its part.
    pub(super) fn of(file: &Path) -> Option<(String, Self)> {
        let stem = file.file_stem()?.to_string_lossy();
        let part = match stem.rsplit_once('.') {
            Some((name, "old")) => Some((name, Self::Old)),
            Some((name, "new")) => Some((name, Self::New)),
            Some((name, "want")) => Some((name, Self::Want)),
            Some(_) | None => stem.starts_with(VALID).then_some((&*stem, Self::Valid)),
        };
        part.map(|(name, part)| (name.to_owned(), part))
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Old => ".old",
            Self::New => ".new",
            Self::Want => ".want",
            Self::Valid => "",
        }
    }
}

impl TestFiles {
    pub(super) fn push(&mut self, name: String, part: TestPart, file: PathBuf) {
        self.0.entry(name).or_default().push((part, file));
    }

    /// Leaves out the tests of other names.
    fn keep_only(&mut self, name: &str) {
        self.0.retain(|own, _| own == name);
    }

    /// Returns true if the names leave no doubt. Files of other tools may begin with `valid-`.
    fn are_certain(&self) -> bool {
        self.0.values().flatten().any(|(part, _)| *part != TestPart::Valid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the suite of a folder whose unions are in the files `from`.
    fn into_suite(self, folder: &Path, from: Vec<PathBuf>) -> Suite {
        let name = named(folder);
        let tests = self.0.into_iter().map(|(name, files)| test(name, files)).collect();
        let (name, file) = (name.display().to_string(), name.to_owned());
        Suite { name, file, from, builtin_unions: BuiltinUnionsArg::Ignored, tests }
    }
}

fn test(name: String, mut files: Vec<(TestPart, PathBuf)>) -> SuiteTest {
    files.sort();
    let find = |wanted| files.iter().find(|(part, _)| *part == wanted).map(|(_, file)| file.clone());
    let shown =
        [TestPart::New, TestPart::Valid, TestPart::Want, TestPart::Old].into_iter().find_map(find).unwrap_or_default();
    let twice = files.iter().zip(files.iter().skip(1)).find(|(one, other)| one.0 == other.0);
    let write = match (twice, find(TestPart::Valid), find(TestPart::New), find(TestPart::Want)) {
        (Some(((part, one), (_, other))), ..) => {
            let (one, other) = (one.display(), other.display());
            Err(format!("both `{one}` and `{other}` are the file `{name}{}` of the test: delete one", part.suffix()))
        }
        (None, Some(object), None, None) if files.len() == 1 => {
            Ok(write(None, object, Want::Accepted { warnings: Vec::new() }))
        }
        (None, Some(_), ..) => Err(format!("`{name}` is accepted by its name, and has other files of the same name")),
        (None, None, Some(new), Some(want)) => Ok(write(find(TestPart::Old), new, Want::File(want))),
        (None, None, new, _) => {
            let (absent, content) = match new {
                Some(_) => (TestPart::Want, "the normalised object, or the `causes` of a rejection"),
                None => (TestPart::New, "the object to write"),
            };
            Err(format!("`{name}{}.yaml` is absent: add the file with {content}", absent.suffix()))
        }
    };
    SuiteTest { name, file: shown, position: None, write }
}

fn write(old: Option<PathBuf>, new: PathBuf, want: Want) -> TestedWrite {
    let (old, new) = (old.map(TestedObject::File), TestedObject::File(new));
    TestedWrite { old, new, subresource: None, ratcheting: Ratcheting::Enabled, want }
}

/// Returns the path of a folder with a name: the parent of a bare file name is empty, and means the working folder.
pub(super) fn named(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}
