//! The question of the page: its inputs, as texts, and the way of the write. Reads the texts, with the problems of each.

use crate::kinds::{KindKnowledge, PlaygroundKinds};
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::diagnostic::{self, Diagnostic};
use kube_unions_manifests::misspelt::{KnownKinds, is_meant_for_kinds};
use kube_unions_manifests::{Document, ManifestFile, Problem, RenderedFile};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// The longest input, in bytes. etcd accepts objects of at most 1.5 MiB.
pub const LARGEST_INPUT: usize = 2 << 20;

/// The inputs of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// CRDs, `UnionDeclaration`s and OpenAPI documents, as YAML or JSON.
    pub definitions: String,
    /// The stored objects of updates, or the manifests that were applied last. An object that is not among them is created.
    pub old: String,
    /// The objects or the manifests that are written, and perhaps their CRDs.
    pub new: String,
    /// How they are written.
    #[serde(default)]
    pub way: WriteWay,
    /// The position of the object whose details are asked for. Without it, they are those of the first object that is not fine.
    #[serde(default)]
    pub object: Option<usize>,
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
    pub(crate) kinds: PlaygroundKinds,
    pub(crate) objects: Vec<ObjectInputs>,
    /// The number of new documents that cannot be read.
    pub(crate) unread: usize,
    pub(crate) way: WriteWay,
    pub(crate) problems: Vec<PlaygroundProblem>,
    /// False if a text is not YAML, or too long.
    pub(crate) is_readable: bool,
}

/// An object that is written.
pub(crate) struct ObjectInputs {
    pub(crate) new: Document,
    /// `None`: it is created.
    pub(crate) old: Option<Document>,
    pub(crate) knowledge: KindKnowledge,
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
        let is_new = diagnostic.file == Path::new(InputName::New.title());
        Self {
            input: if is_new { InputName::New } else { InputName::Definitions },
            line: diagnostic.line,
            column: diagnostic.column,
            severity: diagnostic.severity.name(),
            message: format!("{path}{}", diagnostic.message_of_versions()),
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error.name()
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
        let definitions = definitions(&question.definitions, &mut problems);
        let mut is_readable = definitions.is_some();
        let definitions = definitions.unwrap_or_default();
        if problems.is_empty() && !definitions.is_empty() && !definitions.iter().any(is_meant_for_kinds) {
            let message = "nothing here describes a kind: paste a CustomResourceDefinition, or an OpenAPI document";
            problems.push(PlaygroundProblem::error(InputName::Definitions, message.to_owned()));
        }
        let mut objects = |input: InputName, text: &str| {
            let found = rendered(input, text, &mut problems);
            is_readable &= found.is_some();
            found.unwrap_or_default()
        };
        let (old, _) = objects(InputName::Old, &question.old);
        let (new, unread) = objects(InputName::New, &question.new);
        // A rendering may have the CRDs of its objects.
        let (describing, new): (Vec<_>, Vec<_>) = new.into_iter().partition(Document::describes_kinds);
        let kinds = PlaygroundKinds::of(definitions, describing, &new);
        problems.extend(
            diagnostic::diagnose(&kinds.all)
                .iter()
                .filter(|it| !PlaygroundKinds::is_embedded(&it.file))
                .map(PlaygroundProblem::of_diagnostic),
        );
        let objects = paired(&old, new, &kinds, &mut problems);
        Self { kinds, objects, unread, way: question.way, problems, is_readable }
    }
}

fn is_too_long(input: InputName, text: &str, problems: &mut Vec<PlaygroundProblem>) -> bool {
    if text.len() > LARGEST_INPUT {
        let message = format!(
            "the text has {} bytes, and the playground reads at most {LARGEST_INPUT}: shorten it, or use the command line",
            text.len()
        );
        problems.push(PlaygroundProblem::error(input, message));
    }
    text.len() > LARGEST_INPUT
}

/// Returns the documents of the definitions, `None` if they cannot be read.
fn definitions(text: &str, problems: &mut Vec<PlaygroundProblem>) -> Option<Vec<Document>> {
    let input = InputName::Definitions;
    if is_too_long(input, text, problems) {
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

/// Returns the objects of an input, and the number of documents that are none. `None`: nothing of it can be read.
fn rendered(input: InputName, text: &str, problems: &mut Vec<PlaygroundProblem>) -> Option<(Vec<Document>, usize)> {
    if is_too_long(input, text, problems) {
        return None;
    }
    let read = RenderedFile::read(Path::new(input.title()), text.as_bytes().to_vec());
    let read = read.map_err(|problem| problems.push(PlaygroundProblem::of(input, problem))).ok()?;
    let documents = read.documents();
    let RenderedFile { unread, duplicates, .. } = read;
    let (is_readable, mut others) = (unread.is_empty() || !documents.is_empty(), unread.len());
    problems.extend(unread.into_iter().map(|problem| PlaygroundProblem::of(input, problem)));
    let duplicates = duplicates.into_iter().map(|problem| PlaygroundProblem::of(input, problem));
    problems.extend(duplicates.map(|problem| PlaygroundProblem { severity: Severity::Warning.name(), ..problem }));
    let mut objects = Vec::new();
    for document in documents {
        if let Some(problem) = Problem::of_untyped(&document) {
            problems.push(PlaygroundProblem::of(input, problem));
            others += 1;
        } else {
            objects.push(document);
        }
    }
    is_readable.then_some((objects, others))
}

/// Pairs the new objects with the old ones, and tells what is known of their kinds.
fn paired(
    old: &[Document],
    new: Vec<Document>,
    kinds: &PlaygroundKinds,
    problems: &mut Vec<PlaygroundProblem>,
) -> Vec<ObjectInputs> {
    if let ([old], [new]) = (old, &*new) {
        problems.extend(difference(old, new));
    }
    let is_alone = new.len() == 1;
    let known = KnownKinds::new(kinds.all.kinds());
    let object = |new: Document| {
        let old = old.iter().find(|old| old.identity() == new.identity()).cloned();
        let knowledge = kinds.knowledge(&new, &known);
        if let Some(message) = knowledge.reason().filter(|_| is_alone) {
            let message = message.to_owned();
            problems.push(PlaygroundProblem::of_document(InputName::New, Severity::Warning, &new, "/kind", message));
        }
        ObjectInputs { new, old, knowledge }
    };
    new.into_iter().map(object).collect()
}

/// Returns a problem if both are not versions of one object.
fn difference(old: &Document, new: &Document) -> Option<PlaygroundProblem> {
    let (is, wanted) = old.identity().into_iter().zip(new.identity()).find(|(old, new)| old != new)?;
    let shown = |value: Option<&str>| value.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
    let message = format!(
        "not used: its {} is {}, and that of the new object is {}; give the stored version of the new object",
        is.name,
        shown(is.value),
        shown(wanted.value)
    );
    Some(PlaygroundProblem::of_document(InputName::Old, Severity::Error, old, is.pointer, message))
}
