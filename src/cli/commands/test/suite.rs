//! Suites and their tests, wherever they come from.

use super::format::CauseManifest;
use crate::cli::input::kinds::BuiltinUnionsArg;
use crate::cli::input::manifest::{self, Document, Problem};
use crate::cli::input::values::Subresource;
use kube_unions_core::admission::Ratcheting;
use std::path::{Path, PathBuf};

/// Tests that share the sources of their unions.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    /// The file of the suite, or the folder of its tests.
    pub(super) file: PathBuf,
    /// The files and folders that declare the unions.
    pub(super) from: Vec<PathBuf>,
    pub(super) builtin_unions: BuiltinUnionsArg,
    pub(super) tests: Vec<SuiteTest>,
}

/// One test of a suite.
#[derive(Debug)]
pub(super) struct SuiteTest {
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// Line and column, counted from 1. `None`: the whole file.
    pub(super) position: Option<(usize, usize)>,
    /// The write, or the reason that there is none.
    pub(super) write: Result<TestedWrite, String>,
}

/// A write, and the answer that is expected.
#[derive(Debug)]
pub(super) struct TestedWrite {
    /// The stored object of an update. `None`: a create.
    pub(super) old: Option<TestedObject>,
    pub(super) new: TestedObject,
    pub(super) subresource: Option<Subresource>,
    pub(super) ratcheting: Ratcheting,
    pub(super) want: Want,
}

/// An object of a test.
#[derive(Debug)]
pub(super) enum TestedObject {
    /// A file with one object.
    File(PathBuf),
    /// An object in the suite file.
    Inline(Document),
}

/// The expected answer.
#[derive(Debug)]
pub(super) enum Want {
    /// The object is not changed, and the client sees these warnings.
    Accepted { warnings: Vec<String> },
    /// The object becomes another one. `None`: any warnings.
    Normalized { object: TestedObject, warnings: Option<Vec<String>> },
    /// The object is rejected for exactly these causes.
    Rejected(Vec<CauseManifest>),
    /// A file with the normalised object, or with the causes of a rejection.
    File(PathBuf),
}

impl TestedObject {
    /// Returns the object. Its type is complete.
    pub(super) fn read(&self) -> Result<Document, Problem> {
        let document = match self {
            Self::File(file) => single(file)?,
            Self::Inline(document) => document.clone(),
        };
        if document.kind.is_none() || document.api_version.is_none() {
            let message = "not an object: `apiVersion` or `kind` is missing".to_owned();
            return Err(Problem::of_document(&document, "", message));
        }
        Ok(document)
    }
}

/// Returns the only document of a file.
pub(super) fn single(file: &Path) -> Result<Document, Problem> {
    let mut documents = manifest::parse(file, manifest::bytes(file)?)?;
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        (None, _) => Err(Problem::of_file(file, "no object: the file is empty".to_owned())),
        (Some(_), more) => {
            Err(Problem::of_file(file, format!("{} objects: give a file with one, or write it inline", more + 1)))
        }
    }
}
