//! Suites and their tests, wherever they come from, and the format of a suite file, as its author writes it. The reader is strict about
//! every field, and gives the position of each fault.
//!
//! The JSON Schema for editors is made from the types of the format. Their comments are its descriptions.

use crate::input::kinds::BuiltinUnionsArg;
use crate::input::manifest::{self, Document, Problem};
use crate::input::values::{RatchetingArg, Subresource};
use kube_unions_core::admission::Ratcheting;
use kube_unions_core::field_path;
use kube_unions_core::near::nearest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path as FieldPath, Segment};
use std::collections::BTreeMap;
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
        Problem::of_untyped(&document).map_or(Ok(document), Err)
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

/// The API group of suites.
pub(super) const GROUP: &str = "test.kube-unions.dev";

/// The version that this program reads.
pub(super) const API_VERSION: &str = "test.kube-unions.dev/v1alpha1";

pub(super) const KIND: &str = "Suite";

/// The address of the JSON Schema.
const SCHEMA_ID: &str = "https://kube-unions.dev/schemas/suite.json";

/// Returns the JSON Schema of suite files, for editors.
pub fn suite_schema() -> Value {
    let mut schema = schemars::schema_for!(SuiteManifest);
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    schema.to_value()
}

/// Tests of unions, which `kube-unions test` runs without a cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a Suite with `from` and `tests`")]
#[schemars(title = "Suite")]
pub(super) struct SuiteManifest {
    /// The version of this format.
    #[allow(dead_code, reason = "the finder checks it")]
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The kind of this document.
    #[allow(dead_code, reason = "the finder checks it")]
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// The name of the suite in reports.
    #[serde(default)]
    pub(super) metadata: SuiteMetadata,
    /// Files and folders with the CRDs, UnionDeclarations and saved OpenAPI documents that declare the unions. Paths are
    /// relative to the folder of this file. Built-in kinds are known without them.
    #[schemars(length(min = 1))]
    pub(super) from: Option<Vec<String>>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types. The default is Ignored.
    #[serde(default)]
    pub(super) builtin_unions: BuiltinUnionsArg,
    /// The tests. Each has a name of its own.
    #[schemars(length(min = 1))]
    pub(super) tests: Vec<TestManifest>,
}

/// The name of a suite, and labels for other tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `name`")]
pub(super) struct SuiteMetadata {
    /// The name of the suite in reports. The default is the path of this file.
    pub(super) name: Option<String>,
    /// Labels for other tools.
    #[allow(dead_code, reason = "for other tools")]
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Annotations for other tools, for example `config.kubernetes.io/local-config`.
    #[allow(dead_code, reason = "for other tools")]
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// A write, and the answer that is expected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a test with `name`, `new` and `want`")]
pub(super) struct TestManifest {
    /// The name of the test. No other test of the suite has it.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The stored object. Without it, the test creates an object.
    pub(super) old: Option<ObjectManifest>,
    /// The object that is written.
    pub(super) new: ObjectManifest,
    /// The subresource that is written. The default is the object itself.
    pub(super) subresource: Option<Subresource>,
    /// Allow or deny a write that leaves an invalid union unchanged. The default is Enabled.
    #[serde(default)]
    pub(super) ratcheting: RatchetingArg,
    /// The expected answer.
    pub(super) want: WantManifest,
}

/// An object: the path of a file with one object, relative to the folder of this file, or the object itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a path or an object")]
pub(super) enum ObjectManifest {
    /// The path of a file with one object, relative to the folder of this file.
    Path(String),
    /// The object itself.
    Object(Map<String, Value>),
}

/// The expected answer: exactly one of `accepted`, `normalized` and `rejected`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `accepted`, `normalized` or `rejected`")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(super) struct WantManifest {
    /// The object is accepted and not changed.
    #[serde(default)]
    #[schemars(with = "AcceptedManifest")]
    pub(super) accepted: Option<AcceptedManifest>,
    /// The object is accepted and becomes another one.
    #[serde(default)]
    #[schemars(with = "NormalizedManifest")]
    pub(super) normalized: Option<NormalizedManifest>,
    /// The object is rejected.
    #[serde(default)]
    #[schemars(with = "RejectedManifest")]
    pub(super) rejected: Option<RejectedManifest>,
}

/// An object that is accepted and not changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map, for example `{}`")]
pub(super) struct AcceptedManifest {
    /// All warnings that the client sees, in their order. The default is none.
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

/// An object that is accepted and becomes another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `object`")]
pub(super) struct NormalizedManifest {
    /// The object that is stored. Defaults of its schema may be left out.
    pub(super) object: ObjectManifest,
    /// All warnings that the client sees, in their order. Without it, warnings are not compared.
    pub(super) warnings: Option<Vec<String>>,
}

/// An object that is rejected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `causes`")]
pub(super) struct RejectedManifest {
    /// All causes of the rejection, in any order.
    #[schemars(length(min = 1))]
    pub(super) causes: Vec<CauseManifest>,
}

/// One cause of a rejection.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a cause with `field`")]
pub(super) struct CauseManifest {
    /// The path of the field, for example `spec.strategy.canary`. It is empty for the whole object.
    pub(super) field: String,
    /// The reason, for example `FieldValueForbidden`.
    pub(super) reason: Option<String>,
    /// A text that the message contains.
    pub(super) message: Option<String>,
}

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
    if manifest.from.as_ref().is_some_and(Vec::is_empty) {
        return Err(fault("/from", "`from` is empty: name the files that declare the unions"));
    }
    if manifest.tests.is_empty() {
        return Err(fault("/tests", "`tests` is empty: a suite has at least one test"));
    }
    let base = document.file.parent().unwrap_or(Path::new(""));
    let from = manifest.from.iter().flatten().enumerate();
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
                TestedObject::Inline(self.document.inner(&pointer, Value::Object(object).to_string()))
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
    field_path::pointer(path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }))
}
