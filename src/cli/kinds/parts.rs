//! What kinds are made of, read from documents.

use crate::cli::manifest::{Document, Problem};
use kube_unions_core::declaration::{Declaration, DeclarationError, Definition, DefinitionError, Fault, OpenApi};
use kube_unions_core::field_path::push_token;
use std::collections::BTreeMap;

/// What was read, each thing with the document that it was read from.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By the CRD's name.
    pub(super) definitions: BTreeMap<String, (Document, Definition)>,
    /// By the declaration's name, with what is wrong in itself.
    pub(super) declarations: BTreeMap<String, (Document, (Declaration, Vec<Fault>))>,
    pub(super) openapi: Vec<(Document, OpenApi)>,
    pub(super) problems: Vec<Problem>,
}

impl Parts {
    pub(super) fn read(documents: Vec<Document>) -> Self {
        let mut parts = Self::default();
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

/// Keeps the first of a name, and says where it is when there is another.
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
    // It is known in the file, where the text may be another.
    let message = message.split(" at line ").next().unwrap_or_default();
    let message = format!("`{}` is not a readable {sort}: {place}{message}", name_of(document));
    Problem::of_document(document, &pointer(path), message)
}

/// A JSON Pointer of a path such as `spec.unions[0].path`. Names with dots in them are cut, which leads to what is above.
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
