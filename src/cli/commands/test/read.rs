//! Reads suite files: strict about every field, with the position of each fault.

use super::format::{
    API_VERSION, CauseManifest, GROUP, KIND, ObjectManifest, RejectedManifest, SuiteManifest, TestManifest,
    WantManifest,
};
use super::suite::{Suite, SuiteTest, TestedObject, TestedWrite, Want};
use crate::cli::input::manifest::{Document, Problem};
use kube_unions_core::field_path::push_token;
use kube_unions_core::near::nearest;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path as FieldPath, Segment};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns true for a suite of the version that this program reads.
pub(super) fn is_suite(document: &Document) -> bool {
    document.kind.as_deref() == Some(KIND) && document.api_version.as_deref() == Some(API_VERSION)
}

/// Returns the problem of a document that is almost a suite. It would be passed over in silence.
pub(super) fn near_miss(document: &Document) -> Option<Problem> {
    let (group, _) = document.group_version();
    let kind = document.kind.as_deref()?;
    let is_near = group == GROUP || kind == KIND && nearest(group, [GROUP]).is_some();
    let own = document.api_version.as_deref().unwrap_or_default();
    is_near.then(|| {
        let message = format!("the kind `{kind}` of `{own}` is not run; did you mean `{KIND}` of `{API_VERSION}`?");
        Problem::of_document(document, "", message)
    })
}

/// Reads the suite of a document.
pub(super) fn suite(document: &Document) -> Result<Suite, Problem> {
    let manifest: SuiteManifest = strictly(document)?;
    let fault = |pointer: &str, message: &str| Problem::of_document(document, pointer, message.to_owned());
    if manifest.from.is_empty() {
        return Err(fault("/from", "`from` is empty: name the files that declare the unions"));
    }
    if manifest.tests.is_empty() {
        return Err(fault("/tests", "`tests` is empty: a suite has at least one test"));
    }
    let base = document.file.parent().unwrap_or(Path::new(""));
    let from = manifest.from.iter().enumerate();
    let from = from.map(|(index, path)| resolved(document, base, path, &format!("/from/{index}")));
    let from = from.collect::<Result<Vec<PathBuf>, Problem>>()?;

    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, test) in manifest.tests.iter().enumerate() {
        let pointer = format!("/tests/{index}/name");
        if test.name.trim().is_empty() {
            return Err(fault(&pointer, "`name` is empty: give each test a name"));
        }
        if let Some(first) = names.insert(&test.name, index) {
            let message = format!("`tests[{first}]` already has the name `{}`: give each test its own", test.name);
            return Err(fault(&pointer, &message));
        }
    }
    let name = manifest.metadata.name.unwrap_or_else(|| document.file.display().to_string());
    let tests = manifest.tests.into_iter().enumerate();
    let tests = tests.map(|(index, test)| TestReader { document, base, index }.read(test));
    Ok(Suite {
        name,
        file: document.file.clone(),
        from,
        builtin_unions: manifest.builtin_unions,
        tests: tests.collect::<Result<Vec<SuiteTest>, Problem>>()?,
    })
}

/// Reads the causes in a file, in the form of `rejected`.
pub(super) fn rejection(document: &Document) -> Result<Vec<CauseManifest>, Problem> {
    let RejectedManifest { causes } = strictly(document)?;
    if causes.is_empty() {
        return Err(no_causes(document, "/causes"));
    }
    Ok(causes)
}

/// Reads one test of a suite file.
struct TestReader<'d> {
    document: &'d Document,
    /// The folder of the file.
    base: &'d Path,
    index: usize,
}

impl TestReader<'_> {
    fn read(&self, manifest: TestManifest) -> Result<SuiteTest, Problem> {
        let TestManifest { name, old, new, subresource, ratcheting, want } = manifest;
        let write = TestedWrite {
            old: old.map(|old| self.object(old, "old")).transpose()?,
            new: self.object(new, "new")?,
            subresource,
            ratcheting: ratcheting.into(),
            want: self.want(want)?,
        };
        let position = self.document.position(&self.pointer(""));
        Ok(SuiteTest { name, file: self.document.file.clone(), position, write: Ok(write) })
    }

    fn want(&self, want: WantManifest) -> Result<Want, Problem> {
        match (want.accepted, want.normalized, want.rejected) {
            (Some(accepted), None, None) => Ok(Want::Accepted { warnings: accepted.warnings }),
            (None, Some(normalized), None) => Ok(Want::Normalized {
                object: self.object(normalized.object, "want/normalized/object")?,
                warnings: normalized.warnings,
            }),
            (None, None, Some(rejected)) if rejected.causes.is_empty() => {
                Err(no_causes(self.document, &self.pointer("/want/rejected/causes")))
            }
            (None, None, Some(rejected)) => Ok(Want::Rejected(rejected.causes)),
            (accepted, normalized, rejected) => {
                let number = [accepted.is_some(), normalized.is_some(), rejected.is_some()];
                let number = if number.contains(&true) { "more than one" } else { "none" };
                let message = format!(
                    "`want` has {number} of `accepted`, `normalized` and `rejected`: give exactly one, for example \
                     `accepted: {{}}`"
                );
                Err(Problem::of_document(self.document, &self.pointer("/want"), message))
            }
        }
    }

    fn object(&self, object: ObjectManifest, field: &str) -> Result<TestedObject, Problem> {
        let pointer = self.pointer(&format!("/{field}"));
        Ok(match object {
            ObjectManifest::Path(path) => TestedObject::File(resolved(self.document, self.base, &path, &pointer)?),
            ObjectManifest::Object(object) => {
                TestedObject::Inline(self.document.inner(&pointer, serde_json::Value::Object(object).to_string()))
            }
        })
    }

    fn pointer(&self, below: &str) -> String {
        format!("/tests/{}{below}", self.index)
    }
}

fn no_causes(document: &Document, pointer: &str) -> Problem {
    let message = "`causes` is empty: name the path of each violation".to_owned();
    Problem::of_document(document, pointer, message)
}

/// Resolves a path in a suite file against the folder of that file.
fn resolved(document: &Document, base: &Path, path: &str, pointer: &str) -> Result<PathBuf, Problem> {
    if path.is_empty() || path == "-" {
        let message = format!("`{path}` is no path: give the path of a file, relative to the folder of the suite");
        return Err(Problem::of_document(document, pointer, message));
    }
    Ok(base.join(path))
}

/// Reads a document and refuses fields that its type does not have.
fn strictly<T: DeserializeOwned>(document: &Document) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_str(&document.text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        let message = error.inner().to_string();
        // The position in the JSON text is not the position in the file.
        let message = message.split(" at line ").next().unwrap_or_default();
        let near = meant(message).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Problem::of_document(document, &pointer(error.path()), format!("{place}{message}{near}"))
    })
}

/// Returns the name that an unknown one was meant to be. The message has both in backticks.
fn meant(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    nearest(unknown, names)
}

fn pointer(path: &FieldPath) -> String {
    let mut pointer = String::new();
    for segment in path {
        let token = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer.push('/');
        push_token(&mut pointer, &token);
    }
    pointer
}
