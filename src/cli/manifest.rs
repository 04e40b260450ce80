//! Manifests: YAML and JSON, several documents a file, files and folders, standard input.
//!
//! A JSON document keeps its own text, to the byte; YAML becomes JSON text. A document that is `null` or empty is absent,
//! and the items of a list are documents of their own.

mod edit;
mod layout;
mod source;
mod stream;
mod syntax;
mod yaml;

pub(crate) use edit::{Edit, edit, edited_value};
pub(crate) use layout::pretty;
pub(crate) use source::{Format, Section, Source};
pub(crate) use stream::Stream;

use crate::catalog::{Builder, Catalog};
use crate::declaration::{Definition, DefinitionError};
use anyhow::bail;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How standard input is asked for, and what it is called in messages.
const STDIN: &str = "-";
const STDIN_NAME: &str = "<stdin>";

/// An object of a manifest.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// Where it was read, `<stdin>` for standard input.
    pub(crate) file: PathBuf,
    /// The object as JSON.
    pub(crate) text: String,
    pub(crate) kind: Option<String>,
    pub(crate) api_version: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) section: Arc<Section>,
    /// Where it stands in its section: the empty pointer, or an item of a list.
    pub(crate) pointer: String,
}

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
pub(crate) struct Reading {
    pub(crate) sources: Vec<Source>,
    pub(crate) problems: Vec<Problem>,
}

/// The CRDs of some documents, compiled.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) catalog: Catalog,
    /// By the CRD's name.
    pub(crate) documents: BTreeMap<String, Document>,
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
    fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), position: None, message }
    }

    fn of_reading(file: &Path, error: &std::io::Error) -> Self {
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

    fn of_document(document: &Document, message: String) -> Self {
        Self { file: document.file.clone(), position: document.position(""), message }
    }
}

impl Document {
    /// Line and column, counted from 1, of what a JSON Pointer into the object names, or of the nearest above it that is
    /// there. `None` only where the text is beyond telling: nested past all measure.
    pub(crate) fn position(&self, pointer: &str) -> Option<(usize, usize)> {
        self.section.position(&format!("{}{pointer}", self.pointer))
    }

    /// Whether it is a `CustomResourceDefinition`, of whichever version.
    pub(crate) fn is_definition(&self) -> bool {
        let group = self.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        self.kind.as_deref() == Some("CustomResourceDefinition") && group == Some("apiextensions.k8s.io")
    }

    /// What to call it in a message: `Rollout/web`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.kind.as_deref().unwrap_or("?"), self.name.as_deref().unwrap_or("?"))
    }
}

impl Source {
    /// The documents of the file, lists flattened.
    pub(crate) fn documents(&self) -> Vec<Document> {
        let mut documents = Vec::new();
        for section in &self.sections {
            self.flatten(section, &mut documents);
        }
        documents
    }

    /// The documents of one of its sections.
    pub(crate) fn documents_of(&self, section: &Arc<Section>) -> Vec<Document> {
        let mut documents = Vec::new();
        self.flatten(section, &mut documents);
        documents
    }

    fn flatten(&self, section: &Arc<Section>, documents: &mut Vec<Document>) {
        // A list may hold lists: a stack of what is still to be read, the next on top.
        let mut waiting = vec![(section.json(), String::new(), None::<Head>)];
        while let Some((text, pointer, list)) = waiting.pop() {
            if text == "null" {
                continue;
            }
            let mut head = Head::read(text);
            if let Some(items) = head.items.take() {
                let below = |index: usize| format!("{pointer}/items/{index}");
                let items = items.into_iter().enumerate().rev();
                waiting.extend(items.map(|(index, item)| (item.get(), below(index), Some(head.clone_type()))));
                continue;
            }
            let text = head.take_type(list).map_or_else(|| text.to_owned(), |list| list.with_type(text));
            documents.push(Document {
                file: self.file.clone(),
                text,
                kind: head.kind,
                api_version: head.api_version,
                name: head.name,
                namespace: head.namespace,
                section: Arc::clone(section),
                pointer,
            });
        }
    }
}

/// Reads files and folders, standard input for `-`. A folder without manifests is a problem, an empty file is none.
pub(crate) fn sources(paths: &[PathBuf]) -> Reading {
    let mut reading = Reading::default();
    for path in paths {
        let files = match files(path) {
            Ok(files) => files,
            Err(problem) => {
                reading.problems.push(problem);
                continue;
            }
        };
        for file in files {
            match bytes(&file).and_then(|bytes| Source::read(named(&file), bytes)) {
                Ok(source) => reading.sources.push(source),
                Err(problem) => reading.problems.push(problem),
            }
        }
    }
    reading
}

/// The documents of files and folders. Fails with everything that could not be read.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let Reading { sources, problems } = sources(paths);
    fail_on(&problems)?;
    Ok(sources.iter().flat_map(Source::documents).collect())
}

/// The documents of a text that was read from a file, or from standard input.
pub(crate) fn parse(file: &Path, bytes: Vec<u8>) -> Result<Vec<Document>, Problem> {
    Ok(Source::read(named(file), bytes)?.documents())
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

/// The catalog of the CRDs in files and folders; documents of other kinds are passed over.
pub(crate) fn catalog(paths: &[PathBuf]) -> anyhow::Result<Catalog> {
    let definitions = definitions(read(paths)?);
    fail_on(&definitions.problems)?;
    if definitions.documents.is_empty() {
        bail!("no CustomResourceDefinition in {}", list(paths));
    }
    Ok(definitions.catalog)
}

/// Compiles the CRDs among some documents. A problem with one leaves the others in force.
pub(crate) fn definitions(documents: Vec<Document>) -> Definitions {
    let (mut builder, mut definitions) = (Builder::new(), Definitions::default());
    for document in documents.into_iter().filter(Document::is_definition) {
        let definition = match Definition::from_json(&document.text) {
            Ok(definition) => definition,
            Err(error) => {
                let name = document.name.as_deref().unwrap_or("(no name)");
                let message = match error {
                    DefinitionError::Malformed { .. } | DefinitionError::NotADefinition { .. } => {
                        format!("`{name}` is {error}")
                    }
                    DefinitionError::OpenApi(_) | DefinitionError::NotDescribed(_) | DefinitionError::NoSchema(_) => {
                        error.to_string()
                    }
                };
                definitions.problems.push(Problem::of_document(&document, message));
                continue;
            }
        };
        let name = definition.name().to_owned();
        if let Some(first) = definitions.documents.get(&name) {
            let message = format!("CustomResourceDefinition `{name}` is already in {}", first.file.display());
            definitions.problems.push(Problem::of_document(&document, message));
            continue;
        }
        builder.apply(definition);
        definitions.documents.insert(name, document);
    }
    definitions.catalog = builder.build();
    definitions
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

/// The manifests below a folder, sorted; a file is itself, whatever its name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path == Path::new(STDIN) {
        return Ok(vec![path.to_owned()]);
    }
    if !path.metadata().map_err(|error| Problem::of_reading(path, &error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| Problem::of_reading(&folder, &error))? {
            let entry = entry.map_err(|error| Problem::of_reading(&folder, &error))?;
            // A mounted ConfigMap keeps its files a second time, in hidden folders.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            // A link to a folder is not followed: it may lead back up.
            if entry.file_type().map_err(|error| Problem::of_reading(&path, &error))?.is_dir() {
                folders.push(path);
            } else if is_manifest(&path) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(Problem::of_file(
            path,
            "no manifests in this folder (looked for .yaml, .yml and .json)".to_owned(),
        ));
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    extension.is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
        && path.is_file()
}

/// What tells one object from another, as far as it is there and of the right type.
#[derive(Debug, Default)]
struct Head<'t> {
    kind: Option<String>,
    api_version: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    /// Of a list only.
    items: Option<Vec<&'t RawValue>>,
}

impl<'t> Head<'t> {
    fn read(text: &'t str) -> Self {
        let Some(object) = members(text) else { return Self::default() };
        let metadata = object.get("metadata").and_then(|metadata| members(metadata.get())).unwrap_or_default();
        let kind = string(&object, "kind");
        let items = kind.as_ref().filter(|kind| kind.ends_with("List")).and_then(|_| object.get("items"));
        Self {
            api_version: string(&object, "apiVersion"),
            name: string(&metadata, "name"),
            namespace: string(&metadata, "namespace"),
            items: items.and_then(|items| serde_json::from_str(items.get()).ok()),
            kind,
        }
    }

    fn clone_type(&self) -> Head<'t> {
        Self { kind: self.kind.clone(), api_version: self.api_version.clone(), ..Self::default() }
    }

    /// Items of a typed list, as the API server answers it, leave to the list to say what they are. Gives what was taken.
    fn take_type(&mut self, list: Option<Head<'_>>) -> Option<ListType> {
        let list = list.filter(|_| self.kind.is_none() && self.api_version.is_none())?;
        let kind = list.kind?.strip_suffix("List").filter(|kind| !kind.is_empty())?.to_owned();
        let taken = ListType { kind, api_version: list.api_version? };
        self.kind = Some(taken.kind.clone());
        self.api_version = Some(taken.api_version.clone());
        Some(taken)
    }
}

/// What the items of a typed list are.
struct ListType {
    kind: String,
    api_version: String,
}

impl ListType {
    /// An item that says itself what it is.
    fn with_type(&self, item: &str) -> String {
        let kind = serde_json::json!({"apiVersion": self.api_version, "kind": self.kind}).to_string();
        match (kind.strip_suffix('}'), item.trim_start().strip_prefix('{')) {
            (Some(_), Some(rest)) if rest.trim_start().starts_with('}') => kind,
            (Some(kind), Some(rest)) => format!("{kind},{rest}"),
            _ => item.to_owned(),
        }
    }
}

fn members(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

fn string(object: &BTreeMap<String, &RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(object.get(name)?.get()).ok()
}
