//! Reads CRDs, `UnionDeclaration`s and OpenAPI documents.

use crate::document::Document;
use crate::problem::Problem;
use kube_unions_core::declaration::{Declaration, DeclarationError, Definition, DefinitionError, Fault, OpenApi};
use kube_unions_core::field_path::push_token;
use std::collections::BTreeMap;

/// The definitions and declarations of some documents, each with its document.
#[derive(Debug, Default)]
pub(crate) struct KindParts {
    /// By the CRD's name.
    pub(crate) definitions: BTreeMap<String, (Document, Definition)>,
    /// By the declaration's name, with the faults that it has without its target.
    pub(crate) declarations: BTreeMap<String, (Document, (Declaration, Vec<Fault>))>,
    pub(crate) openapi: Vec<(Document, OpenApi)>,
    pub(crate) problems: Vec<Problem>,
    /// The number of documents of all kinds.
    pub(crate) documents: usize,
}

impl KindParts {
    pub(crate) fn read(documents: Vec<Document>) -> Self {
        let mut parts = Self { documents: documents.len(), ..Self::default() };
        for document in documents {
            if document.is_definition() {
                parts.read_definition(document);
            } else if document.is_declaration() {
                parts.read_declaration(document);
            } else if document.is_openapi() {
                parts.read_openapi(document);
            }
        }
        parts
    }

    fn read_definition(&mut self, document: Document) {
        match Definition::from_json(&document.text) {
            Ok(definition) => {
                let name = definition.name().to_owned();
                let twice = add(&mut self.definitions, "CustomResourceDefinition", name, document, definition);
                self.problems.extend(twice);
            }
            Err(DefinitionError::Malformed { path, message }) => {
                self.problems.push(malformed(&document, "CustomResourceDefinition", &path, &message));
            }
            Err(error @ DefinitionError::NotADefinition { .. }) => {
                let message = format!("`{}` is {error}", name_of(&document));
                self.problems.push(Problem::of_document(&document, "", message));
            }
            Err(error) => self.problems.push(Problem::of_document(&document, "", error.to_string())),
        }
    }

    fn read_declaration(&mut self, document: Document) {
        match Declaration::from_json(&document.text) {
            Ok(declared) => {
                let name = declared.0.name().to_owned();
                self.problems.extend(add(&mut self.declarations, "UnionDeclaration", name, document, declared));
            }
            Err(DeclarationError::Malformed { path, message }) => {
                self.problems.push(malformed(&document, "UnionDeclaration", &path, &message));
            }
            Err(error) => {
                let message = format!("`{}` is {error}", name_of(&document));
                self.problems.push(Problem::of_document(&document, "", message));
            }
        }
    }

    fn read_openapi(&mut self, document: Document) {
        match OpenApi::parse(&document.text) {
            Ok(openapi) => self.openapi.push((document, openapi)),
            Err(error) => self.problems.push(Problem::of_file(&document.file, error.to_string())),
        }
    }
}

/// Adds a part under its name. Returns a problem if the name is taken; the first part stays.
fn add<T>(
    known: &mut BTreeMap<String, (Document, T)>,
    sort: &str,
    name: String,
    document: Document,
    part: T,
) -> Option<Problem> {
    if let Some((first, _)) = known.get(&name) {
        let message = format!("{sort} `{name}` is already in {}", first.file.display());
        return Some(Problem::of_document(&document, "", message));
    }
    known.insert(name, (document, part));
    None
}

fn malformed(document: &Document, sort: &str, path: &str, message: &str) -> Problem {
    let path = path.trim_end_matches('.');
    let place = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
    // The position in the JSON text is not the position in the file.
    let message = message.split(" at line ").next().unwrap_or_default();
    let message = format!("`{}` is not a readable {sort}: {place}{message}", name_of(document));
    Problem::of_document(document, &pointer(path), message)
}

/// Returns the JSON Pointer of a path, for example `spec.unions[0].path`. A name with a dot yields the pointer of a parent.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for name in path.split(['.', '[', ']']).filter(|name| !name.is_empty()) {
        pointer.push('/');
        push_token(&mut pointer, name);
    }
    pointer
}

fn name_of(document: &Document) -> &str {
    document.name.as_deref().unwrap_or("(no name)")
}
