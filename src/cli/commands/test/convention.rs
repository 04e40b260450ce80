//! Suites by the names of files: `NAME.old.yaml`, `NAME.new.yaml` and `NAME.want.yaml`, and `valid-NAME.yaml`.
//!
//! The files of a folder are a suite of their own. The other files of the folder declare the unions. Knows nothing of suite
//! files.

use super::suite::{Suite, SuiteTest, TestedObject, TestedWrite, Want};
use crate::cli::input::kinds::BuiltinUnionsArg;
use kube_unions_core::admission::Ratcheting;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    pub(super) fn keep_only(&mut self, name: &str) {
        self.0.retain(|own, _| own == name);
    }

    /// Returns true if the names leave no doubt. Files of other tools may begin with `valid-`.
    pub(super) fn are_certain(&self) -> bool {
        self.0.values().flatten().any(|(part, _)| *part != TestPart::Valid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the suite of a folder whose unions are in the files `from`.
    pub(super) fn into_suite(self, folder: &Path, from: Vec<PathBuf>) -> Suite {
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
