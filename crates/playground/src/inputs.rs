//! The question of the page: its inputs, as texts, and the way of the write. Reads the texts, with the problems of each.

use kube_unions_core::declaration::Severity;
use kube_unions_manifests::diagnostic::{self, Diagnostic};
use kube_unions_manifests::misspelt::{KnownKinds, kind_of_declaration};
use kube_unions_manifests::{Assembly, BuiltinUnions, Document, ManifestFile, Problem, assemble};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// The longest input, in bytes. etcd accepts objects of at most 1.5 MiB.
pub const LARGEST_INPUT: usize = 2 << 20;

/// The inputs of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// CRDs, `UnionDeclaration`s and OpenAPI documents, as YAML or JSON.
    pub definitions: String,
    /// The stored object of an update, or the manifest that was applied last. Empty for a create.
    pub old: String,
    /// The object or the manifest that is written.
    pub new: String,
    /// How it is written.
    #[serde(default)]
    pub way: WriteWay,
}

/// A way to write an object over an old one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteWay {
    /// As a whole, as `kubectl replace` does.
    #[default]
    Replace,
    /// As a JSON merge patch.
    Merge,
    /// By client-side apply.
    Csa,
    /// By server-side apply.
    Ssa,
}

/// An input of the page. Serializes as the name of its field in the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputName {
    /// CRDs and declarations.
    Definitions,
    /// The stored object.
    Old,
    /// The object that is written.
    New,
}

/// A problem with an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaygroundProblem {
    /// The input.
    pub input: InputName,
    /// Counted from 1, as is the column. `None` for the whole input.
    pub line: Option<usize>,
    /// The column.
    pub column: Option<usize>,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The problem, and its remedy.
    pub message: String,
}

/// The inputs as they were read.
pub(crate) struct PlaygroundInputs {
    pub(crate) kinds: Assembly,
    pub(crate) old: Option<Document>,
    pub(crate) new: Option<Document>,
    pub(crate) way: WriteWay,
    pub(crate) problems: Vec<PlaygroundProblem>,
    /// False if a text is not YAML, or too long.
    pub(crate) is_readable: bool,
}

impl InputName {
    /// Returns the name of the input in messages.
    fn title(self) -> &'static str {
        match self {
            Self::Definitions => "definitions",
            Self::Old => "old object",
            Self::New => "new object",
        }
    }
}

impl PlaygroundProblem {
    /// Returns an error about a whole input.
    pub fn error(input: InputName, message: String) -> Self {
        Self { input, line: None, column: None, severity: Severity::Error.name(), message }
    }

    /// Returns a problem of a value of a document.
    pub(crate) fn of_document(
        input: InputName,
        severity: Severity,
        document: &Document,
        pointer: &str,
        message: String,
    ) -> Self {
        Self { severity: severity.name(), ..Self::of(input, Problem::of_document(document, pointer, message)) }
    }

    fn of(input: InputName, problem: Problem) -> Self {
        let (line, column) = problem.position.unzip();
        Self { line, column, ..Self::error(input, problem.message) }
    }

    fn of_diagnostic(diagnostic: &Diagnostic) -> Self {
        let path = if diagnostic.path.is_empty() { String::new() } else { format!("{}: ", diagnostic.path) };
        Self {
            input: InputName::Definitions,
            line: diagnostic.line,
            column: diagnostic.column,
            severity: diagnostic.severity.name(),
            message: format!("{path}{}", diagnostic.message_of_versions()),
        }
    }
}

impl Display for PlaygroundProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.input.title())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl PlaygroundInputs {
    pub(crate) fn read(question: &Question) -> Self {
        let mut problems = Vec::new();
        let definitions = documents(InputName::Definitions, &question.definitions, &mut problems);
        let mut is_readable = definitions.is_some();
        let definitions = definitions.unwrap_or_default();
        problems.extend(definitions.iter().filter_map(|document| {
            let message = kind_of_declaration(document)?;
            Some(PlaygroundProblem::of_document(InputName::Definitions, Severity::Error, document, "", message))
        }));
        let missing = if problems.is_empty() { missing(&question.definitions, &definitions) } else { None };
        let kinds = assemble(definitions, BuiltinUnions::Ignored);
        problems.extend(diagnostic::diagnose(&kinds).iter().map(PlaygroundProblem::of_diagnostic));
        if let Some(message) = missing {
            problems.push(PlaygroundProblem::error(InputName::Definitions, message));
        }
        let mut object = |input: InputName, text: &str| {
            let found = documents(input, text, &mut problems);
            is_readable &= found.is_some();
            only_object(input, found.unwrap_or_default(), &mut problems)
        };
        let old = object(InputName::Old, &question.old);
        let new = object(InputName::New, &question.new);
        let old = old.filter(|old| new.as_ref().is_none_or(|new| is_same(old, new, &mut problems)));
        if let Some(new) = &new {
            problems.extend(misspelt(&kinds, new));
        }
        Self { kinds, old, new, way: question.way, problems, is_readable }
    }
}

/// Returns the documents of an input, `None` if it cannot be read.
fn documents(input: InputName, text: &str, problems: &mut Vec<PlaygroundProblem>) -> Option<Vec<Document>> {
    if text.len() > LARGEST_INPUT {
        let message = format!(
            "the text has {} bytes, and the playground reads at most {LARGEST_INPUT}: shorten it, or use the command line",
            text.len()
        );
        problems.push(PlaygroundProblem::error(input, message));
        return None;
    }
    match ManifestFile::read(PathBuf::from(input.title()), text.as_bytes().to_vec()) {
        Ok(file) => Some(file.documents()),
        Err(problem) => {
            problems.push(PlaygroundProblem::of(input, problem));
            None
        }
    }
}

/// Returns the only object of an input, `None` for an empty one.
fn only_object(input: InputName, documents: Vec<Document>, problems: &mut Vec<PlaygroundProblem>) -> Option<Document> {
    let mut found = documents.into_iter();
    let first = found.next()?;
    let mut fail = |document: &Document, message: &str| {
        problems.push(PlaygroundProblem::of_document(input, Severity::Error, document, "", message.to_owned()));
    };
    if let Some(second) = found.next() {
        fail(&second, "more than one object: give one");
        return None;
    }
    if first.kind.is_none() || first.api_version.is_none() {
        fail(&first, "not an object: `apiVersion` or `kind` is missing");
        return None;
    }
    Some(first)
}

/// Returns true if both are versions of one object. Adds a problem if they are not.
fn is_same(old: &Document, new: &Document, problems: &mut Vec<PlaygroundProblem>) -> bool {
    let differing = old.identity().into_iter().zip(new.identity()).find(|(old, new)| old != new);
    let Some((is, wanted)) = differing else { return true };
    let shown = |value: Option<&str>| value.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
    let message = format!(
        "not used: its {} is {}, and that of the new object is {}; give the stored version of the new object",
        is.name,
        shown(is.value),
        shown(wanted.value)
    );
    problems.push(PlaygroundProblem::of_document(InputName::Old, Severity::Error, old, is.pointer, message));
    false
}

/// Returns a message if the definitions describe no kind.
fn missing(text: &str, definitions: &[Document]) -> Option<String> {
    let message = if text.trim().is_empty() || definitions.is_empty() {
        "empty: paste a CustomResourceDefinition, or pick a sample"
    } else if !definitions.iter().any(|it| it.is_definition() || it.makes_definitions() || it.is_openapi()) {
        "nothing here describes a kind: paste a CustomResourceDefinition, or an OpenAPI document"
    } else {
        return None;
    };
    Some(message.to_owned())
}

/// Returns a warning for an object whose kind is almost one that the definitions describe, and for one that they do not describe.
fn misspelt(kinds: &Assembly, object: &Document) -> Option<PlaygroundProblem> {
    let kind = object.group_version_kind();
    if kinds.catalog.lookup(&kind.group, &kind.version, &kind.kind).is_some() || kinds.kinds().next().is_none() {
        return None;
    }
    let (name, api_version) = (object.kind.as_deref()?, object.api_version.as_deref()?);
    let message = if kinds.kinds().any(|known| *known == kind) {
        format!(
            "the kind `{name}` of `{api_version}` has no unions in force, so nothing is judged; declare them in a UnionDeclaration"
        )
    } else {
        let meant = KnownKinds::new(kinds.kinds()).meant(object);
        let advice = meant.map_or_else(|| "paste its CRD".to_owned(), |meant| format!("did you mean {meant}?"));
        format!("the kind `{name}` of `{api_version}` is not among the definitions; {advice}")
    };
    Some(PlaygroundProblem::of_document(InputName::New, Severity::Warning, object, "/kind", message))
}
